// A sweep that asks for its best: what is simulated, against the whole sweep.
#include "farm/best/best_selection.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "core/base/error.hpp"
#include "core/step/run/result.hpp"
#include "experiments/sweep/best.hpp"
#include "farm/coordinator/task_queue.hpp"
#include "io/ranking/best_proof.hpp"
#include "io/results/canonical_bytes.hpp"
#include "tests/farm/selected_run.hpp"
#include "tests/farm/sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

const std::string kAxes =
    "axes: {strategy.tp: [1, 2, 4], strategy.pp: [1, 2], strategy.micro_batch: [1, 2],\n"
    "       topology: [{fat_tree: {leaf_hosts: 1, oversubscription: 4}}, {rail_optimized: {}}], transport.seed: [1, "
    "2]}\n";

SweepJob job_of(std::uint32_t best, const std::string& objective = "step_time_s", double gap = 0) {
  experiments::Sweep sweep = small_sweep(kAxes + "objective: " + objective + "\n",
                                         {"cluster.usd_per_gpu_hour=2", "transport.routing=ecmp_hash"});
  if (best > 0) experiments::ask_for_best(sweep, best, "--best");
  sweep.gap = gap;
  return SweepJob(serialize_job(sweep, {}));
}

}  // namespace

TEST_CASE("of a sweep's best those are simulated whose bound is no worse than the last of them") {
  const SweepJob whole = job_of(0);
  const std::vector<Outcome> all = run_all(whole);
  const std::vector<double> steps =
      times_of(make_results(whole.sweep(), whole.plan(), looking_into(all)), "step_time_s");
  REQUIRE(steps.size() > 20);
  std::vector<double> ranked = steps;
  std::sort(ranked.begin(), ranked.end());
  for (const std::uint32_t best : {1u, 3u, 10u, 48u, 100u}) {
    const SweepJob job = job_of(best);
    CAPTURE(best, job.plan().bounds.size(), job.plan().steps.size());
    CHECK(job.plan().bounds.size() <= job.plan().steps.size());
    std::set<std::vector<double>> answers;
    for (const std::size_t at_once : {1u, 3u, 100u}) {
      const SelectedRun run(job, at_once, static_cast<std::uint32_t>(at_once));
      const io::Results results = run.results();
      const std::vector<double> found = times_of(results, "step_time_s"),
                                bounds = times_of(results, "step_time_bound_s");
      const double last = best <= ranked.size() ? ranked[best - 1] : 1e9;
      for (std::size_t row = 0; row < steps.size(); ++row) {
        CHECK(bounds[row] <= steps[row]);
        const bool needed = bounds[row] <= last;
        CHECK(results.experiments.find("status")->text_at(row) == (needed ? "ran" : "bounded"));
        CHECK((needed ? found[row] == steps[row] : std::isnan(found[row])));
      }
      std::vector<double> top;
      for (const double time : found)
        if (!std::isnan(time)) top.push_back(time);
      std::sort(top.begin(), top.end());
      REQUIRE(top.size() >= std::min<std::size_t>(best, ranked.size()));
      CHECK(std::equal(top.begin(), top.begin() + std::min<std::ptrdiff_t>(best, std::ssize(ranked)), ranked.begin()));
      CHECK(run.queue.failed() == 0);
    }
  }
  // One bound after the other leaves most out; one of these experiments is best.
  const SweepJob job = job_of(1);
  const SelectedRun run(job, 1, 1);
  std::size_t simulated = 0;
  for (std::uint32_t task = job.plan().task_of_step(0); task < job.tasks().size(); ++task)
    simulated += run.queue.outcome(task).ok() ? 1 : 0;
  CHECK(simulated < job.plan().steps.size() / 2);
}

TEST_CASE("with a gap the same steps are simulated in any order, and nothing is better by more than it") {
  const auto run = [](const SweepJob& job, std::size_t at_once) {
    return SelectedRun(job, at_once, static_cast<std::uint32_t>(at_once), {}, true);
  };
  const SweepJob all = job_of(1'000);  // more than there are: every step
  std::vector<double> ranked = times_of(run(all, 1).results(), "step_time_s");
  std::sort(ranked.begin(), ranked.end());
  std::size_t fewer = 0;
  for (const double gap : {0.02, 0.1, 0.5}) {
    for (const std::uint32_t best : {1u, 5u, 20u}) {
      const SweepJob job = job_of(best, "step_time_s", gap);
      const SelectedRun first = run(job, 1);
      const std::vector<double> expected = times_of(first.results(), "step_time_s");
      CAPTURE(gap, best);
      for (const std::size_t at_once : {2u, 7u, 100u}) {
        const SelectedRun more = run(job, at_once);
        CHECK(more.selected().proven_gap == first.selected().proven_gap);
        const std::vector<double> found = times_of(more.results(), "step_time_s");
        for (std::size_t row = 0; row < found.size(); ++row)
          CHECK((found[row] == expected[row] || (std::isnan(found[row]) && std::isnan(expected[row]))));
      }
      std::vector<double> top;
      for (const double time : expected)
        if (!std::isnan(time)) top.push_back(time);
      std::sort(top.begin(), top.end());
      REQUIRE(top.size() >= best);
      const double proven = first.selected().proven_gap.value();
      CHECK(proven <= gap);
      CHECK(top[best - 1] - ranked[best - 1] <= proven * top[best - 1]);
      const SweepJob without_gap = job_of(best);
      const auto exact = times_of(run(without_gap, 1).results(), "step_time_s");
      fewer += std::count_if(exact.begin(), exact.end(), [](double time) { return !std::isnan(time); }) >
               static_cast<std::ptrdiff_t>(top.size());
    }
  }
  CHECK(fewer > 0);
}

TEST_CASE("results tell which rung left an experiment behind, and what its objective is at its bound") {
  for (const std::string objective : {"step_time_s", "tokens_per_s_per_gpu", "usd_per_million_tokens"}) {
    const SweepJob job = job_of(3, objective);
    const SelectedRun run(job, 1, 1);
    const SelectedResults selected = run.selected();
    const io::Table table = run.results().experiments;
    const io::Column *by = table.find("bounded_by"), *bound = table.find("step_time_bound_s");
    REQUIRE(by != nullptr);
    CHECK((table.find(objective + "_bound") == nullptr) == (objective == "step_time_s"));
    std::map<std::string, std::size_t> counts;
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const PlannedStep& step = job.plan().steps.at(job.plan().experiments.at(row).step);
      const bool is_analytic = selected.plan.steps.at(job.plan().experiments.at(row).step).bound != kNoBound;
      CHECK(by->text_at(row) == (is_analytic ? "analytic" : "sums"));
      ++counts[table.text_at("status", row) + " " + by->text_at(row)];
      if (!is_analytic) CHECK(bound->number_at(row) == core::seconds(step.floor_ps));
      if (objective == "step_time_s" || table.text_at("status", row) != "ran") continue;
      // Tokens a second go down, and their price up, as the step time goes up.
      const double ratio = bound->number_at(row) / table.find("step_time_s")->number_at(row);
      const double value = table.find(objective)->number_at(row);
      CHECK(table.find(objective + "_bound")->number_at(row) ==
            Approx(objective == "tokens_per_s_per_gpu" ? value / ratio : value * ratio).epsilon(1e-12));
    }
    CHECK(counts["ran analytic"] >= 3);
    CHECK(counts["ran sums"] == 0);
    CHECK(counts["bounded sums"] > 0);
  }
}

TEST_CASE("the closing gap of results is that of one rank, for any number of ranks") {
  for (const double gap : {0.0, 0.05}) {
    const SweepJob job = job_of(3, "tokens_per_s_per_gpu", gap);
    const auto proven = [&](const SelectedRun& run) {
      io::Results results = run.results();
      const SelectedResults selected = run.selected();
      results.provenance = {{"best", std::int64_t{3}},
                            {"best_analytic", static_cast<std::int64_t>(selected.analytic)},
                            {"best_gap", selected.proven_gap.value()}};
      return results;
    };
    const SelectedRun one(job, 1, 1, {}, true);
    const io::Results results = proven(one);
    const io::BestProof proof = io::best_proof(results).value();
    // The last of the best that one rank knows, experiment by experiment; those with one step have its result at once.
    const io::Column* tokens = results.experiments.find("tokens_per_s_per_gpu");
    std::vector<double> known, values, drawn;
    for (const std::uint32_t task : one.computed) {
      if (!job.plan().is_step(task)) continue;
      for (std::uint32_t other = job.plan().task_of_step(0); other < job.tasks().size(); ++other) {
        const double value = tokens->number_at(job.plan().experiment_of(other));
        if (job.result_key(other) != job.result_key(task) || std::isnan(value)) continue;
        values.push_back(value);
        std::sort(values.begin(), values.end(), std::greater<>());
        known.push_back(values.size() < 3 ? 0 : values[2]);
      }
    }
    for (std::size_t i = 1; i < proof.closing.size(); ++i)
      drawn.push_back(std::isnan(proof.closing[i].known) ? 0 : proof.closing[i].known);
    CHECK(drawn == known);
    CHECK(proof.closing.back().open <= proof.closing.back().known * (1 + gap));
    for (const std::size_t at_once : {2u, 7u, 100u}) {
      const SelectedRun more(job, at_once, static_cast<std::uint32_t>(at_once), {}, true);
      const io::Results others = proven(more);
      CHECK(io::canonical_bytes(others) == io::canonical_bytes(results));
      const io::BestProof other = io::best_proof(others).value();
      REQUIRE(other.closing.size() == proof.closing.size());
      for (std::size_t i = 1; i < proof.closing.size(); ++i) {
        CHECK((other.closing[i].known == proof.closing[i].known ||
               (std::isnan(other.closing[i].known) && std::isnan(proof.closing[i].known))));
        CHECK((other.closing[i].open == proof.closing[i].open || std::isnan(other.closing[i].open)));
      }
    }
  }
}

TEST_CASE("of a sweep's best no two steps and no two bounds with one key are computed, and all have its outcome") {
  const SweepJob job = job_of(10);
  for (const std::size_t at_once : {1u, 4u, 100u}) {
    SelectedRun run(job, at_once, 7);
    std::set<core::sharing::Key> computed;
    for (const std::uint32_t task : run.computed) CHECK(computed.insert(job.result_key(task)).second);
    std::map<core::sharing::Key, core::Time> times;
    std::size_t settled = 0;
    for (std::uint32_t task = 0; task < job.tasks().size(); ++task) {
      if (!run.queue.outcome(task).ok()) continue;
      ++settled;
      const core::Time time = core::step::decode_step(run.queue.outcome(task).bytes).step_ps;
      CHECK(times.try_emplace(job.result_key(task), time).first->second == time);
    }
    CAPTURE(at_once, settled, computed.size());
    CHECK(times.size() == computed.size());
    CHECK(settled > computed.size());  // the seed changes no route of some of these fabrics, and no bound
  }
}

TEST_CASE("a store that has what a selection opens takes the place of computing it") {
  const SweepJob job = job_of(3);
  const SelectedRun fresh(job, 1, 1);
  BestSelection selection(job, 2);
  TaskQueue queue(job.tasks(), &selection);
  std::size_t asked = 0;
  queue.find_known = [&](std::uint32_t task) -> std::optional<Outcome> {
    ++asked;
    CHECK_FALSE(queue.held(task));
    const Outcome& known = fresh.queue.outcome(task);
    return known.ok() ? std::optional(Outcome{Status::ok, known.bytes, 0}) : std::nullopt;
  };
  // What was opened before there was a store to look into.
  SweepRunner runner(job.common_spec());
  std::size_t computed = 0;
  for (; const auto task = queue.take(); ++computed) queue.settle(*task, run_guarded(runner, job.spec(*task), {}));
  CHECK(queue.complete());
  CHECK(computed <= 4);  // with two open, one more of either kind may be than with one
  CHECK(asked > computed);
}

TEST_CASE("the bounds of steps that a journal knows without them are computed as part of the answer") {
  const SweepJob job = job_of(2);
  const SelectedRun fresh(job, 1, 1);
  std::vector<std::uint32_t> steps;
  for (std::uint32_t task = job.plan().task_of_step(0); task < job.tasks().size(); ++task)
    if (fresh.queue.outcome(task).ok()) steps.push_back(task);
  REQUIRE(steps.size() >= 2);
  const SelectedRun resumed(job, 1, 1, steps);
  CHECK(times_of(fresh.results(), "step_time_bound_s") == times_of(resumed.results(), "step_time_bound_s"));
}

TEST_CASE("what a journal knows of a sweep's best changes nothing of the answer") {
  const SweepJob job = job_of(3);
  const io::Results fresh = SelectedRun(job, 1, 1).results();
  const auto last = static_cast<std::uint32_t>(job.tasks().size() - 1);
  for (const std::vector<std::uint32_t>& known :
       {std::vector<std::uint32_t>{last}, {0, 1, last, last - 1}, {job.plan().task_of_step(0), last - 3}}) {
    const io::Results resumed = SelectedRun(job, 2, 5, known).results();
    for (const char* column : {"step_time_s", "step_time_bound_s"}) {
      const auto one = times_of(fresh, column), other = times_of(resumed, column);
      for (std::size_t row = 0; row < one.size(); ++row)
        CHECK((one[row] == other[row] || (std::isnan(one[row]) && std::isnan(other[row]))));
    }
  }
}

TEST_CASE("the best by money and by throughput are those of the whole sweep") {
  for (const std::string objective : {"usd_per_million_tokens", "tokens_per_s_per_gpu", "mfu"}) {
    const SweepJob whole = job_of(0, objective), job = job_of(2, objective);
    const std::vector<Outcome> all = run_all(whole);
    auto expected = times_of(make_results(whole.sweep(), whole.plan(), looking_into(all)), objective);
    auto found = times_of(SelectedRun(job, 2, 1).results(), objective);
    std::erase_if(found, [](double value) { return std::isnan(value); });
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    if (objective != "usd_per_million_tokens")
      std::reverse(expected.begin(), expected.end()), std::reverse(found.begin(), found.end());
    CAPTURE(objective);
    REQUIRE(found.size() >= 2);
    CHECK((found[0] == expected[0] && found[1] == expected[1]));
  }
}

TEST_CASE("a step that is faster than its bound voids the proof, which is an error") {
  const SweepJob job = job_of(1);
  BestSelection selection(job, 1);
  SweepRunner runner(job.common_spec());
  const Plan& plan = job.plan();
  for (std::uint32_t bound = 0; bound < plan.bounds.size(); ++bound) {
    Outcome outcome = run_guarded(runner, job.spec(plan.task_of_bound(bound)), {});
    auto step = core::step::decode_step(outcome.bytes);
    step.step_ps *= 2;
    outcome.bytes = core::step::encode(step);
    selection.settled(plan.task_of_bound(bound), outcome);
  }
  const std::uint32_t first = plan.task_of_step(0);
  CHECK_THROWS_AS(selection.settled(first, run_guarded(runner, job.spec(first), {})), core::InternalError);
}

TEST_CASE("objectives that no bound of the step time bounds have no proven best") {
  for (const char* objective : {"memory_peak_bytes"})
    CHECK_THROWS_WITH(job_of(2, objective),
                      Catch::Contains("no lower bound proves the best by memory_peak_bytes; rank by"));
}

TEST_CASE("where an analytic step fails the sums are the bound, and the answer is the same") {
  const SweepJob job = job_of(1);
  const auto times = [](const io::Results& results) {
    auto all = times_of(results, "step_time_s");
    std::erase_if(all, [](double time) { return std::isnan(time); });
    return *std::min_element(all.begin(), all.end());
  };
  BestSelection selection(job, 1);
  TaskQueue queue(job.tasks(), &selection);
  SweepRunner runner(job.common_spec());
  const Plan& plan = job.plan();
  while (const auto task = queue.take())
    queue.settle(
        *task, plan.is_bound(*task) ? Outcome{Status::error, "no bound", 1} : run_guarded(runner, job.spec(*task), {}));
  REQUIRE(queue.complete());
  const OutcomeOf outcome = [&](std::uint32_t task) -> const Outcome& { return queue.outcome(task); };
  const SelectedResults selected = selected_results(job, outcome);
  CHECK(times(make_results(job.sweep(), selected.plan, selected.outcome)) == times(SelectedRun(job, 1, 1).results()));
}
