// Shards of a sweep: parts that make up the whole, of about equal cost, with equal networks together.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "farm/effort/dry_run.hpp"
#include "io/results/canonical_bytes.hpp"
#include "tests/farm/sweep_samples.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;
using core::sharing::Key;

namespace {

experiments::Sweep first_sweep() {
  return experiments::read_sweep(source_folder() + "/experiments/sweeps/first.yaml", {"strategy.global_batch=64"});
}

/// Some that do not fit, steps that several experiments share, and collectives that several experiments share.
experiments::Sweep mixed_sweep() {
  return small_sweep(
      "axes: {strategy.tp: [1, 2, 4], tick_ns: [0, 200ns], transport.seed: [1, 2], cluster.gpu.memory_gib: [1, 40]}\n");
}

Key digest_of(std::uint64_t number) {
  Key key;
  key.digest[0] = number;
  return key;
}

}  // namespace

TEST_CASE("every experiment is in exactly one shard, with its step and all that the step may ask for") {
  const auto sweep = mixed_sweep();
  const Plan whole = make_plan(sweep);
  REQUIRE(std::any_of(whole.experiments.begin(), whole.experiments.end(), [](const auto& e) { return !e.fits(); }));
  for (const std::uint32_t count : {2u, 3u, 50u}) {
    std::map<Key, int> steps;
    std::set<Key> collectives;
    std::vector<int> times(sweep.experiments.size());
    for (std::uint32_t number = 1; number <= count; ++number) {
      const Plan part = plan_of_shard(whole, {number, count});
      REQUIRE(part.experiments.size() == whole.experiments.size());
      for (std::uint32_t id = 0; id < part.experiments.size(); ++id) {
        const PlannedExperiment& experiment = part.experiments[id];
        CHECK(experiment.fits() == whole.experiments[id].fits());
        if (experiment.in_other_shard) continue;
        ++times[id];
        if (experiment.fits())
          CHECK(part.steps.at(experiment.step).key == whole.steps.at(whole.experiments[id].step).key);
      }
      for (const PlannedStep& step : part.steps) {
        ++steps[step.key];
        std::set<Key> asked, should;
        for (const auto one : step.collectives) asked.insert(part.collectives.at(one).key);
        for (const PlannedStep& known : whole.steps)
          if (known.key == step.key)
            for (const auto one : known.collectives) should.insert(whole.collectives[one].key);
        CHECK(asked == should);
      }
      for (const PlannedCollective& one : part.collectives) collectives.insert(one.key);
    }
    for (const int one : times) CHECK(one == 1);
    CHECK(steps.size() == whole.steps.size());
    for (const auto& [key, often] : steps) CHECK(often == 1);
    CHECK(collectives.size() == whole.collectives.size());
  }
}

TEST_CASE("eight shards of the first sweep cost about the same, and hardly more than the whole") {
  const Plan whole = make_plan(first_sweep());
  double sum = 0, most = 0;
  for (std::uint32_t number = 1; number <= 8; ++number) {
    const double cost = cost_of(plan_of_shard(whole, {number, 8}));
    sum += cost, most = std::max(most, cost);
  }
  CHECK(sum >= cost_of(whole));
  CHECK(sum < 1.02 * cost_of(whole));
  CHECK(most < 1.1 * cost_of(whole) / 8);
}

TEST_CASE("steps that ask for the same collectives stay in one shard where the shards are even all the same") {
  Plan plan;  // three families of four steps each, with a dear collective of their own
  for (std::uint32_t family = 0; family < 3; ++family) plan.collectives.push_back({digest_of(family), 0, {}, {}, 100});
  for (std::uint32_t step = 0; step < 12; ++step)
    plan.steps.push_back({digest_of(100 + step), step, 1, {step % 3}, 1, 10});
  const auto shard_of = shards_of_steps(plan, 3);
  for (std::uint32_t step = 3; step < 12; ++step) CHECK(shard_of[step] == shard_of[step % 3]);
  CHECK(std::set<std::uint32_t>(shard_of.begin(), shard_of.end()).size() == 3);
}

TEST_CASE("one large family of steps is cut, because a shard that waits for another is worse than a collective twice") {
  Plan plan;
  plan.collectives.push_back({digest_of(0), 0, {}, {}, 1});
  for (std::uint32_t step = 0; step < 40; ++step) plan.steps.push_back({digest_of(100 + step), step, 1, {0}, 1, 10});
  std::map<std::uint32_t, int> steps;
  for (const auto shard : shards_of_steps(plan, 4)) ++steps[shard];
  CHECK(steps == std::map<std::uint32_t, int>{{0, 10}, {1, 10}, {2, 10}, {3, 10}});
}

TEST_CASE("a shard's answer has its rows, and together they are the rows of the whole") {
  const auto sweep = mixed_sweep();
  const auto rows = [&](const JobOptions& options) {
    const SweepJob job(serialize_job(sweep, options));
    const auto results = make_results(job.sweep(), job.plan(), looking_into(run_all(job)));
    std::map<std::int64_t, std::pair<std::string, std::int64_t>> result;
    const auto& table = results.experiments;
    for (std::size_t row = 0; row < table.rows(); ++row)
      result[std::get<std::vector<std::int64_t>>(table.find("id")->values)[row]] = {
          std::get<std::vector<std::string>>(table.find("status")->values)[row],
          std::get<std::vector<std::int64_t>>(table.find("step_time_ps")->values)[row]};
    CHECK(result.size() == table.rows());
    return result;
  };
  for (const bool share : {true, false}) {
    auto joined = rows({share, {1, 3}});
    for (const std::uint32_t number : {2u, 3u}) {
      const auto part = rows({share, {number, 3}});
      CHECK(part.size() < sweep.experiments.size());
      for (const auto& row : part) CHECK(joined.insert(row).second);
    }
    CHECK(joined == rows({share, {}}));
  }
}

TEST_CASE("a serialized job says its shard, and without it is the job of the whole sweep") {
  auto sweep = small_sweep("");
  sweep.text += "# ,\"shard\":[9,9],\"sweep\": is only a comment\n";
  const std::string whole = serialize_job(sweep, {}), part = serialize_job(sweep, {true, {2, 3}});
  CHECK(parse_job(part).options.shard == Shard{2, 3});
  CHECK(parse_job(whole).options.shard == Shard{});
  CHECK(unsharded_job(parse_job(part)) == whole);
  CHECK(unsharded_job(parse_job(whole)) == whole);
  CHECK(serialize_job(sweep, {true, {1, 1}}) == whole);
}

TEST_CASE("a shard is I/N with I from 1 to N") {
  CHECK(parse_shard("1/1") == Shard{1, 1});
  CHECK(parse_shard("12/1000") == Shard{12, 1000});
  for (const char* wrong : {"", "/", "1", "0/3", "4/3", "1/0", "-1/3", "1/-3", "a/3", "1/3x", "1/3/3", " 1/3", "1 /3",
                            "99999999999/3", "1/99999999999"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_shard(wrong), core::InputError);
  }
}

TEST_CASE("a dry run of a shard tells its part of the work, and the parts are the whole") {
  const auto sweep = mixed_sweep();
  const Forecast whole = forecast(sweep);
  std::size_t experiments = 0, out_of_memory = 0;
  std::uint64_t steps = 0;
  double cost = 0;
  for (std::uint32_t number = 1; number <= 3; ++number) {
    const Forecast part = forecast(sweep, {number, 3});
    experiments += part.experiments, out_of_memory += part.out_of_memory, steps += part.steps.unique;
    cost += part.cost_share;
    CHECK(dry_run_text(sweep, part, 1).find(fmt::format("shard {} of 3", number)) != std::string::npos);
  }
  experiments::Sweep with_assumed = sweep;
  with_assumed.assumed = "strategy.zero=1";
  CHECK(dry_run_text(with_assumed, whole, 1).find("\nassumed defaults: strategy.zero=1 (--set") != std::string::npos);
  CHECK(experiments == whole.experiments);
  CHECK(out_of_memory == whole.out_of_memory);
  CHECK(steps == whole.steps.unique);
  CHECK(cost >= Approx(1));
  CHECK(whole.cost_share == 1);
}
