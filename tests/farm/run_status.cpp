// What a run says of itself, made by somebody else: it is told or refused, and nothing that tells it meets a surprise.
#include "farm/status/run_status.hpp"

#include <catch2/catch.hpp>

#include "core/base/error.hpp"
#include "farm/serve/metrics.hpp"
#include "farm/status/progress.hpp"
#include "farm/system/exit_code.hpp"
#include "tests/farm/serve_client.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using Catch::Contains;
using nlohmann::json;

namespace {

/// Of a sweep, with every member that a status may have.
json sweep_status() {
  json status = serve::testing::sample_status("running");
  status["name"] = "a sweep";
  status["experiments"] = {{"total", 9},  {"ran", 4},     {"out_of_memory", 1}, {"too_large", 1},
                           {"failed", 1}, {"pending", 2}, {"excluded", 3}};
  status["ranking"] = {{"by", "step_time_s"},
                       {"descending", false},
                       {"ranked", 4},
                       {"rows",
                        {{{"id", 3},
                          {"layout", "tp=8"},
                          {"largest_loss", "exposed_dp"},
                          {"largest_loss_share", 0.25},
                          {"from_best", "best"},
                          {"step_time_s", 1.5},
                          {"step_time_low_s", nullptr},
                          {"step_time_high_s", 2.0},
                          {"tokens_per_s_per_gpu", 100.0},
                          {"mfu", 0.4},
                          {"memory_peak_bytes", 1000}}}}};
  const json points{{"id", {3}}, {"tokens_per_s_per_gpu", {100.0}}, {"memory_peak_bytes", {1000}}};
  status["pareto"] = {{"front", points}, {"front_size", 1}, {"cloud", points}};
  status["pareto"]["front"]["layout"] = {"tp=8"};
  status["failures"] = {
      {{"task", 4}, {"kind", "steps"}, {"class", "crash"}, {"experiment", 2}, {"reason", "signal 11"}}};
  return status;
}

/// Everything that a status is used for, here.
std::size_t told(const json& status) {
  return describe_status(status).size() + progress_line(status).size() + serve::run_metrics(status).size() +
         (run_is_over(status) ? 1 : 0) + status.dump().size();
}

/// The places of all values inside a document.
std::vector<json::json_pointer> places(const json& document) {
  std::vector<json::json_pointer> all;
  const json flat = document.flatten();
  for (const auto& [place, value] : flat.items()) {
    for (json::json_pointer at(place); !at.empty(); at = at.parent_pointer())
      if (std::find(all.begin(), all.end(), at) == all.end()) all.push_back(at);
  }
  return all;
}

const std::vector<json> kOthers{nullptr,
                                true,
                                -1,
                                0.5,
                                1e308,
                                -1e308,
                                UINT64_MAX,
                                INT64_MIN,
                                "x",
                                json::array(),
                                json::object(),
                                json::array({nullptr}),
                                json::array({1, 2, 3})};

}  // namespace

TEST_CASE("a run that was stopped is told as such, and how it goes on") {
  json status = sweep_status();
  status["state"] = "drained";
  status["ranks"] = 1;
  const std::string text = describe_status(status);
  CHECK_THAT(text, Catch::StartsWith("stopped on ") && Contains("), 1 rank\n") && Contains("` resumes it") &&
                       !Contains("drained"));
}

TEST_CASE("a status that any one value has become another in is told as it is, or refused as none of ours") {
  const json good = sweep_status();
  REQUIRE(told(parse_status(good.dump(), "status.json")) > 500);
  std::size_t refused = 0, taken = 0;
  const auto try_out = [&](const json& bent) {
    CAPTURE(bent.dump());
    try {
      const std::size_t size = told(parse_status(bent.dump(), "status.json"));
      CHECK(size > 500);
      ++taken;
    } catch (const core::InputError& error) {
      CHECK_THAT(error.what(), Contains("status.json: not a status this program wrote: "));
      ++refused;
    }
  };
  for (const auto& place : places(good)) {
    for (const json& other : kOthers) {
      json bent = good;
      bent[place] = other;
      try_out(bent);
    }
    json bent = good;
    json& parent = bent[place.parent_pointer()];
    if (parent.is_object())
      parent.erase(place.back());
    else
      parent.erase(std::stoul(place.back()));
    try_out(bent);
  }
  CHECK(refused > 500);
  CHECK(taken > 50);
}

TEST_CASE("a run of a program that does not say its tokens has a status without throughput") {
  json status = sweep_status();
  status["ranking"]["rows"][0]["tokens_per_s_per_gpu"] = nullptr;
  const std::string metrics = serve::run_metrics(parse_status(status.dump(), "status.json"));
  CHECK_THAT(metrics, Contains("best_step_seconds 1.5") && !Contains("best_tokens_per_second_per_gpu"));
}

TEST_CASE("texts that are no status at all are refused by what is wrong with them") {
  const auto says = [](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH(parse_status(text, "status.json"), Contains("not a status this program wrote") && Contains(why));
  };
  says("", "bad JSON");
  says("{", "bad JSON");
  says("null", "must be an object, not null");
  says("[]", "must be an object, not array");
  says("{\"state\": 5}", "no member 'format'");
  json status = sweep_status();
  status["format"] = 1;
  says(status.dump(), "'format'");
  status = sweep_status();
  status["state"] = "sleeping";
  says(status.dump(), "'state'");
  status = sweep_status();
  status["load"]["busy"].push_back(0.5);
  says(status.dump(), "'busy' differs in length");
  status = sweep_status();
  status["updated"] = "UPDATED";
  std::string huge = status.dump();
  huge.replace(huge.find("\"UPDATED\""), 9, "1e400");
  says(huge, "bad JSON");
  says("{\"x\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}", "nested deeper");
  says("\"" + std::string(9'000'000, 'a') + "\"", "larger than");
}

TEST_CASE("how a run ended is read with its failures, and what this program does not write is refused") {
  const Completion failed = parse_completion(
      R"({"format": 1, "state": "failed", "exit": 74, "reason": "the disk is full"})", "complete.json");
  CHECK(failed.exit_code == kExitIo);
  CHECK(failed.reason == "the disk is full");
  const json good{{"format", 1},
                  {"state", "complete"},
                  {"exit", 3},
                  {"total", 5},
                  {"done", 5},
                  {"failed", 2},
                  {"failures",
                   {{{"task", 1}, {"class", "crash"}, {"reason", "signal 11"}, {"experiments", {7, 8}}},
                    {{"task", 2}, {"class", "error"}, {"reason", "why"}}}}};
  const Completion complete = parse_completion(good.dump(), "complete.json");
  CHECK(complete.exit_code == kExitFailed);
  CHECK_FALSE(complete.reason.has_value());
  CHECK(complete.total == 5);
  CHECK(complete.failed == 2);
  REQUIRE(complete.failures.size() == 2);
  CHECK(complete.failures[0].status == "crash");
  CHECK(complete.failures[0].experiment == 7);
  CHECK_FALSE(complete.failures[1].experiment.has_value());
  for (const char* text :
       {"", "null", "{}", R"({"format": 1})", R"({"format": 1, "exit": 256})", R"({"format": 1, "exit": -1})",
        R"({"format": 1, "exit": "0"})", R"({"format": 1, "exit": 0, "reason": 5})", R"({"format": 2, "exit": 0})",
        R"({"format": 1, "exit": 0, "failures": [5]})", R"({"format": 1, "exit": 3, "failed": -1})",
        R"({"format": 1, "exit": 3, "failures": [{"class": "crash", "reason": "", "experiments": [4294967296]}]})"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_completion(text, "complete.json"),
                      Contains("complete.json: not what this program writes when a run is over"));
  }
}
