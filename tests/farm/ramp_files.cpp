// What `manyworlds ramp` reads: critical batches from YAML and step times from results; what is refused how.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/base/error.hpp"
#include "farm/ramp/critical_file.hpp"
#include "farm/ramp/ramp_report.hpp"
#include "tests/farm/said.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::ramp;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_critical_file(text, "c.yaml");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

struct Row {
  std::int64_t batch, tp, gpus;
  std::string status;
  double step_s, tokens_per_sample;
  std::string gpu = "a100";
};

io::Results results_of(const std::vector<Row>& rows, bool has_batch = true) {
  std::vector<std::int64_t> ids, batch, tp, gpus, memory;
  std::vector<std::string> status, gpu;
  std::vector<double> step, throughput;
  for (const Row& row : rows) {
    ids.push_back(static_cast<std::int64_t>(ids.size())), batch.push_back(row.batch), tp.push_back(row.tp);
    gpus.push_back(row.gpus), status.push_back(row.status), gpu.push_back(row.gpu), memory.push_back(0);
    const double tokens = row.tokens_per_sample * static_cast<double>(row.batch);
    step.push_back(row.status == "ran" ? row.step_s : std::nan(""));
    throughput.push_back(row.status == "ran" ? tokens / row.step_s / static_cast<double>(row.gpus) : std::nan(""));
  }
  io::Results results;
  results.axis_names = {"strategy.tp", "cluster.gpu"};
  results.experiments.columns = {{"id", "", "", ids},
                                 {"strategy.tp", "", "", tp},
                                 {"cluster.gpu", "", "", gpu},
                                 {"status", "", "", status},
                                 {"gpus", "", "", gpus},
                                 {"step_time_s", "s", "", step},
                                 {"tokens_per_s_per_gpu", "tokens/s", "", throughput},
                                 {"memory_peak_bytes", "bytes", "", memory}};
  if (!has_batch) return results;
  results.axis_names.insert(results.axis_names.begin(), "strategy.global_batch");
  results.experiments.columns.push_back({"strategy.global_batch", "", "", batch});
  return results;
}

}  // namespace

TEST_CASE("measured critical batches and constants of the law are read with their units") {
  const CriticalFile measured =
      parse_critical_file("points: {0: 65536, 1e9: 4e5, 50e9: 4e6}\nbatch_tokens: 2e6\n", "c");
  REQUIRE(measured.points.size() == 3);
  CHECK((measured.points[1].tokens == 1e9 && measured.points[1].critical == 4e5 && measured.batch_tokens == 2e6));
  const CriticalFile law = parse_critical_file("b_star: 1e8\nalpha_s: 0.5\n", "c");
  CHECK((law.points.empty() && law.law.b_star == 1e8 && law.law.alpha_s == 0.5 && law.law.alpha_b == 0.21));
}

TEST_CASE("whatever is wrong in a file of critical batches is refused with its line, its key and what would be right") {
  CHECK(refusal("points: {0: 1}\n").empty());
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"- 1\n",
            "c.yaml:1: a file of critical batches must be a mapping with the keys points, batch_tokens, b_star,"},
           {"{}\n", "c.yaml:1: names neither 'points', as in {1e9: 4e5, 50e9: 4e6}, nor a constant"},
           {"pionts: {}\n", "c.yaml:1: unknown key 'pionts'; did you mean 'points'?"},
           {"points: {}\n", "c.yaml:1: 'points' must map 1 to 10000 numbers of tokens"},
           {"points: [1, 2]\n", "c.yaml:1: 'points' must map 1 to 10000 numbers of tokens"},
           {"points:\n  soon: 1\n",
            "c.yaml:2: a key of 'points' must be the tokens trained so far, from 0 to 1e+18, not"},
           {"points:\n  nan: 1\n", "c.yaml:2: a key of 'points' must be the tokens trained so far"},
           {"points:\n  -1: 1\n", "c.yaml:2: a key of 'points' must be the tokens trained so far"},
           {"points:\n  1e9: 0\n", "c.yaml:2: 'points.1e9' must be a number (tokens) from 1 to"},
           {"points:\n  1e9: large\n", "c.yaml:2: 'points.1e9' must be a number"},
           {"points:\n  1e9: 1e5\n  5e8: 2e5\n", "c.yaml:3: 'points' must ascend in tokens: 5e+08 stands after 1e+09"},
           {"points:\n  1e9: 1e5\n  1000000000: 2e5\n", "c.yaml:3: 'points' must ascend in tokens"},
           {"points:\n  1e9: 2e5\n  2e9: 1e5\n", "c.yaml:3: the critical batch falls from 200000 to 100000 tokens"},
           {"points: {0: 1}\nb_star: 1e8\n", "c.yaml:2: 'b_star' is of the law, which 'points' take the place of"},
           {"batch_tokens: 1e6\n", "c.yaml:1: 'batch_tokens' belongs to 'points'"},
           {"points: {0: 1}\nbatch_tokens: -1\n", "c.yaml:2: 'batch_tokens' must be a number (tokens) from 0 to"},
           {"alpha_b: 0\n", "c.yaml:1: 'alpha_b' must be a number from 0.01 to 10"},
           {"alpha_b: 0.01\nalpha_s: 5\n", "c.yaml:1: 'alpha_s' must be at most 20 times 'alpha_b', not 5 and 0.01"}})
    CHECK_THAT(refusal(text), Catch::StartsWith(message));
}

TEST_CASE("of each batch and layout the fastest experiment that ran counts") {
  const io::Results results = results_of({{8, 1, 4, "ran", 2, 512},
                                          {8, 1, 4, "ran", 1.5, 512},
                                          {16, 1, 4, "out_of_memory", 0, 512},
                                          {16, 2, 4, "ran", 3, 512},
                                          {8, 2, 4, "ran", 1, 512},
                                          {32, 1, 4, "bounded", 0, 512}});
  const SimulatedBatches batches = simulated_batches(results, "", "r.h5");
  CHECK((batches.gpus == 4 && batches.tokens_per_sample == 512));
  CHECK(batches.layouts == std::vector<std::string>{"tp=1 gpu=a100", "tp=2 gpu=a100"});
  REQUIRE(batches.candidates.size() == 3);
  CHECK((batches.candidates[0].id == 1 && batches.candidates[0].step_s == 1.5 && batches.candidates[0].tokens == 4096));
  CHECK((batches.candidates[1].id == 4 && batches.candidates[2].id == 3 && batches.candidates[2].layout == 1));
  CHECK(simulated_batches(results, "strategy.tp == 2", "r.h5").candidates.size() == 2);
  CHECK_THROWS_WITH(simulated_batches(results, "gpus > 99", "r.h5"), "r.h5: no experiment ran where gpus > 99");
}

TEST_CASE("results that are of several machines or models, or of one batch alone, are refused by name") {
  const auto refused = [](const std::vector<Row>& rows, bool has_batch = true) -> std::string {
    try {
      simulated_batches(results_of(rows, has_batch), "", "r.h5");
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(refused({{8, 1, 4, "ran", 2, 512}}, false),
             Catch::StartsWith("r.h5: the sweep has no axis strategy.global_batch; a ramp needs one, as in"));
  CHECK_THAT(
      refused({{8, 1, 4, "ran", 2, 512}, {8, 1, 8, "ran", 2, 512}}),
      Catch::StartsWith("r.h5: experiments 0 and 1 differ in gpus: 4 and 8; a ramp is of one model on the same"));
  CHECK_THAT(refused({{8, 1, 4, "ran", 2, 512}, {8, 1, 4, "ran", 2, 512, "h100"}}),
             Catch::StartsWith("r.h5: experiments 0 and 1 differ in cluster.gpu: a100 and h100"));
  CHECK_THAT(refused({{8, 1, 4, "ran", 2, 512}, {16, 1, 4, "ran", 2, 1024}}),
             Catch::StartsWith("r.h5: experiments 0 and 1 differ in tokens per sample: 512 and 1024"));
  CHECK(refused({}) == "r.h5: no experiment ran");
}

TEST_CASE("a fixed batch takes the tokens that were asked for, and no schedule takes longer than the best") {
  const SimulatedBatches batches = simulated_batches(results_of({{8, 1, 4, "ran", 1, 512},
                                                                 {16, 1, 4, "ran", 1.5, 512},
                                                                 {32, 1, 4, "ran", 2.4, 512},
                                                                 {64, 2, 4, "ran", 3.9, 512}}),
                                                     "", "r.h5");
  for (const char* critical : {"points: {0: 1000, 1e8: 3e4}", "b_star: 2.1e8"}) {
    RampQuestion question;
    question.tokens = 2e8, question.batch = 16, question.restart_s = 1e3, question.parameters = 1e6;
    question.critical = parse_critical_file(critical, "c.yaml"), question.critical_name = "c.yaml";
    const RampReport report = decide_ramp(question, batches);
    REQUIRE(report.schedules.back().name == "given");
    const BatchSchedule& given = report.schedules.back().schedule;
    CHECK(given.tokens() == Approx(2e8).epsilon(1e-12));
    CHECK(given.steps() == Approx(2e8 / 16 / 512).epsilon(1e-12));
    CHECK(given.time_s == Approx(1.5 * 2e8 / 16 / 512).epsilon(1e-12));
    // E + B S = D, for the batch that was asked for.
    CHECK(report.end_tokens + 16 * 512 * report.end_steps == Approx(2e8).epsilon(1e-12));
    for (const NamedSchedule& one : report.schedules)
      CHECK(one.schedule.time_s >= report.schedules.front().schedule.time_s * (1 - 1e-12));
    question.batch = 24;
    CHECK(decide_ramp(question, batches).schedules.back().name == "best_fixed");
    CHECK_THAT(decide_ramp(question, batches).text(), Catch::Contains("batch 24 did not run here"));
  }
}

TEST_CASE("ramp says what is missing or wrong with exit code 2") {
  TemporaryFolder folder;
  const std::string run = (folder.path / "r.h5").string();
  io::write_results(run, results_of({{8, 1, 4, "ran", 1, 512}, {16, 1, 4, "ran", 1.5, 512}}));
  folder.put("c.yaml", "points: {0: 1000, 1e8: 3e4}\n");
  const std::string critical = (folder.path / "c.yaml").string();
  const auto code = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"ramp", run});
    return testing::say(std::move(words)).exit_code;
  };
  CHECK(code({"--tokens", "1e8", "--batch", "8", "--critical", critical}) == 0);
  CHECK(code({"--tokens", "1e8", "--batch", "8", "--parameters", "1e6"}) == 0);
  CHECK(code({"--tokens", "1e8", "--batch", "8"}) == 2);  // no run, no parameters
  CHECK(code({"--tokens", "1e8"}) == 2);
  CHECK(code({"--batch", "8", "--critical", critical}) == 2);
  CHECK(code({"--tokens", "many", "--batch", "8", "--critical", critical}) == 2);
  CHECK(code({"--tokens", "nan", "--batch", "8", "--critical", critical}) == 2);
  CHECK(code({"--tokens", "1000", "--batch", "8", "--critical", critical}) == 2);  // less than a step
  CHECK(code({"--tokens", "1e8", "--batch", "0", "--critical", critical}) == 2);
  CHECK(code({"--tokens", "1e8", "--batch", "8", "--critical", critical, "--parameters", "1e6"}) == 2);
  CHECK(code({"--tokens", "1e8", "--batch", "8", "--critical", critical, "--restart", "soon"}) == 2);
  CHECK(code({"--tokens", "1e8", "--batch", "8", "--critical", critical, "--where", "step_time_s > 9"}) == 2);
  CHECK(code({"--tokens", "1e8", "--batch", "8", "--critical", "nowhere.yaml"}) == 2);
}
