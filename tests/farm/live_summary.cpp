// The live summary of a running sweep: the same values as in the results, in whatever order these arrive.
#include <catch2/catch.hpp>

#include <random>

#include "farm/plan/collective_result.hpp"
#include "farm/sweep/live_summary.hpp"
#include "io/ranking/sweep_analysis.hpp"
#include "tests/farm/sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;
using nlohmann::json;

namespace {

constexpr auto kForever = std::chrono::hours(1);

/// 48 experiments: some do not fit, some are beyond their limit, some are one step.
experiments::Sweep varied() {
  return small_sweep(
      "axes:\n  strategy.tp: [1, 2, 4]\n  strategy.micro_batch: [1, 2]\n  cluster.gpu.memory_gib: [0.125, 40]\n"
      "  transport.seed: [1, 2]\n  limit.link_hops: [1000, 1000000000]\n");
}

struct Case {
  experiments::Sweep sweep = varied();
  SweepJob job{serialize_job(sweep, {})};
  std::vector<Outcome> outcomes = run_all(job);

  io::Results answer() const { return make_results(job.sweep(), job.plan(), looking_into(outcomes)); }
  std::vector<std::uint32_t> order(unsigned seed) const {
    std::vector<std::uint32_t> tasks(outcomes.size());
    std::iota(tasks.begin(), tasks.end(), 0u);
    std::shuffle(tasks.begin(), tasks.end(), std::mt19937(seed));
    return tasks;
  }
};

/// What `manyworlds top` has of the answer, in the words of status.json.
json top_of(const io::Results& results, const std::string& by) {
  json told = json::array();
  const auto top =
      json::parse(io::render_json(results, io::rank_experiments(results, {LiveSummary::kMaxRanked, by, ""})));
  for (const auto& row : top.at("rows")) {
    json one{{"layout", row.at("layout")},
             {"largest_loss", row.at("largest_loss")},
             {"largest_loss_share", row.at("largest_loss_share")},
             {"from_best", row.at("from_best")}};
    for (const char* name : {"id", "step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s_per_gpu", "mfu",
                             "memory_peak_bytes"})
      one[name] = row.at("columns").at(name);
    one[by] = row.at("columns").at(by);
    told.push_back(one);
  }
  return told;
}

/// Rows that ran and that no row beats in one of throughput and memory without losing in the other; of equal rows the
/// first. Pair by pair.
std::vector<std::uint32_t> front_of(const io::Results& results) {
  const io::Column &speed = *results.experiments.find("tokens_per_s_per_gpu"),
                   &memory = *results.experiments.find("memory_peak_bytes"), &id = *results.experiments.find("id");
  std::vector<std::uint32_t> front;
  for (std::size_t row = 0; row < id.rows(); ++row) {
    bool beaten = std::isnan(speed.number_at(row));
    for (std::size_t other = 0; other < id.rows() && !beaten; ++other) {
      const double s = speed.number_at(other), m = memory.number_at(other);
      const bool same = s == speed.number_at(row) && m == memory.number_at(row);
      beaten = s >= speed.number_at(row) && m <= memory.number_at(row) && (!same || other < row);
    }
    if (!beaten) front.push_back(static_cast<std::uint32_t>(id.number_at(row)));
  }
  return front;
}

}  // namespace

TEST_CASE("the ranking told at the end is that of the answer, in whatever order and portions results came in") {
  const Case one;
  const io::Results answer = one.answer();
  const json expected = top_of(answer, one.sweep.objective);
  REQUIRE(expected.size() == LiveSummary::kMaxRanked);
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    LiveSummary standing(one.job);
    std::mt19937 chance(seed);
    for (const std::uint32_t task : one.order(seed)) {
      standing.settled(task, one.outcomes[task]);
      if (chance() % 5 == 0) standing.catch_up(looking_into(one.outcomes), kForever);
    }
    standing.catch_up(looking_into(one.outcomes), kForever);
    CHECK(standing.to_json().at("ranking").at("rows") == expected);
    LiveSummary at_once(one.job);
    at_once.add_all_rows(answer);
    CHECK(at_once.to_json().at("ranking") == standing.to_json().at("ranking"));
    CHECK(at_once.to_json().at("pareto") == standing.to_json().at("pareto"));
  }
}

TEST_CASE("a sweep that ranks by memory is told ranked by memory, the least first") {
  Case one;
  one.sweep = small_sweep("axes: {strategy.tp: [1, 2, 4]}\nobjective: memory_peak_bytes\n");
  const SweepJob job(serialize_job(one.sweep, {}));
  const auto outcomes = run_all(job);
  LiveSummary standing(job);
  for (std::uint32_t task = 0; task < outcomes.size(); ++task) standing.settled(task, outcomes[task]);
  standing.catch_up(looking_into(outcomes), kForever);
  const json rows = standing.to_json().at("ranking").at("rows");
  CHECK(rows == top_of(make_results(job.sweep(), job.plan(), looking_into(outcomes)), "memory_peak_bytes"));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].at("memory_peak_bytes") < rows[1].at("memory_peak_bytes"));
}

TEST_CASE("the front told is what no experiment beats in throughput and memory, and each point has its layout") {
  const Case one;
  const io::Results answer = one.answer();
  const std::vector<std::uint32_t> expected = front_of(answer);
  REQUIRE(expected.size() > 1);
  LiveSummary standing(one.job);
  for (const std::uint32_t task : one.order(7)) {
    standing.settled(task, one.outcomes[task]);
    standing.catch_up(looking_into(one.outcomes), kForever);
  }
  const json told = standing.to_json().at("pareto");
  auto ids = told.at("front").at("id").get<std::vector<std::uint32_t>>();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(told["front"]["layout"][i] == io::Axes(answer).layout(ids[i]));
    CHECK(told["front"]["tokens_per_s_per_gpu"][i] ==
          answer.experiments.find("tokens_per_s_per_gpu")->number_at(ids[i]));
    CHECK(told["front"]["memory_peak_bytes"][i] == answer.experiments.find("memory_peak_bytes")->number_at(ids[i]));
  }
  std::sort(ids.begin(), ids.end());
  CHECK(ids == expected);
  CHECK(told.at("front_size") == expected.size());
}

TEST_CASE("experiments are counted by what became of them, as the answer counts them") {
  Case one;
  const auto failing = one.job.plan().task_of_step(one.job.plan().experiments.at(6).step);
  one.outcomes.at(failing) = {Status::error, "it broke", 0};
  LiveSummary standing(one.job);
  CHECK(standing.to_json().at("experiments").at("pending").get<std::size_t>() +
            standing.to_json().at("experiments").at("out_of_memory").get<std::size_t>() ==
        one.sweep.experiments.size());
  for (const std::uint32_t task : one.order(1)) standing.settled(task, one.outcomes[task]);
  const json told = standing.to_json().at("experiments");
  const auto counts = one.answer().experiments.counts_of("status");
  REQUIRE(counts.size() == 4);
  for (const auto& [status, count] : counts) CHECK(told.at(status) == count);
  CHECK(told.at("pending") == 0);
  CHECK(told.at("total") == one.sweep.experiments.size());
}

TEST_CASE(
    "the last failures are told with their reasons, cut between characters, and nothing told grows with a sweep") {
  const Case one;
  LiveSummary standing(one.job);
  const std::string reason = std::string(LiveSummary::kMaxReasonBytes - 1, 'x') + "ü and more";
  for (std::uint32_t task = 0; task < one.outcomes.size(); ++task)
    standing.settled(task, {task % 2 == 0 ? Status::crash : Status::input, reason, 0});
  const json told = standing.to_json().at("failures");
  REQUIRE(told.size() == LiveSummary::kMaxFailures);
  const std::uint32_t last = static_cast<std::uint32_t>(one.outcomes.size() - 1) / 2 * 2;
  CHECK(told.back().at("task") == last);
  CHECK(told.back().at("class") == "crash");
  CHECK(told.back().at("reason") == std::string(LiveSummary::kMaxReasonBytes - 1, 'x') + " …");
  const std::uint32_t step = last - one.job.plan().task_of_step(0);
  CHECK(told.back().at("experiment") == one.job.plan().steps.at(step).experiment);
}

TEST_CASE("a thousand experiments leave a sample of points that depends on nothing but their numbers") {
  const Case one;
  io::Results many;
  std::vector<std::int64_t> ids, memory;
  std::vector<double> speed;
  for (std::int64_t i = 0; i < 1'000; ++i)
    ids.push_back(i), memory.push_back(1'000 + i), speed.push_back(1.0 + static_cast<double>(i));
  // A job of as many experiments, so that their numbers exist.
  std::string seeds;
  for (int seed = 1; seed <= 1'000; ++seed) seeds += std::to_string(seed) + ",";
  const SweepJob job(serialize_job(small_sweep("axes: {transport.seed: [" + seeds + "]}\n"), {}));
  many.axis_names = {"transport.seed"};
  many.experiments.columns = {{"id", "", "", ids},
                              {"transport.seed", "", "", ids},
                              {"status", "", "", std::vector<std::string>(1'000, "ran")},
                              {"tokens_per_s_per_gpu", "tokens/s", "", speed},
                              {"memory_peak_bytes", "bytes", "", memory}};
  LiveSummary standing(job);
  standing.add_all_rows(many);
  const json told = standing.to_json();
  CHECK(told.at("pareto").at("front_size") == 1'000);
  CHECK(told.at("pareto").at("front").at("id").size() == LiveSummary::kMaxFrontPoints);
  CHECK(told.at("pareto").at("front").at("id").front() == 999);
  CHECK(told.at("pareto").at("front").at("id").back() == 0);
  REQUIRE(told.at("pareto").at("cloud").at("id").size() == LiveSummary::kMaxCloudPoints);
  CHECK(told.at("ranking").at("ranked") == 1'000);
  CHECK(told.dump().size() < 60'000);
  auto sampled = told.at("pareto").at("cloud").at("id").get<std::vector<int>>();
  // Of a fair sample of 400 in 1,000, the mean number is 499.5 within four deviations of 11.2.
  CHECK(std::accumulate(sampled.begin(), sampled.end(), 0.0) / 400 == Approx(499.5).margin(45));
}
