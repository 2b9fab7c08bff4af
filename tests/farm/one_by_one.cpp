// What the experiments of a sweep would take one by one, and the audit that is made of it.
#include "farm/effort/one_by_one.hpp"

#include <catch2/catch.hpp>

#include "core/base/error.hpp"
#include "core/step/run/result.hpp"
#include "farm/effort/pilot.hpp"
#include "farm/plan/collective_result.hpp"
#include "tests/farm/sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

std::string with_cpu(const std::string& step, double cpu_s) {
  auto result = core::step::decode_step(step);
  result.cpu_s = cpu_s;
  return core::step::encode(result);
}

/// Computes steps in runners that know nothing. A step takes `cpu_s_of` it, its collectives nothing.
ComputeAlone in_new_runners(const SweepJob& job, std::function<double(std::uint32_t task)> cpu_s_of) {
  return [&job, cpu_s_of](std::uint32_t task, std::chrono::duration<double>) {
    SweepRunner runner(job.common_spec());
    std::vector<std::string> results, inputs;
    for (const std::uint32_t input : job.tasks()[task].inputs) {
      inputs.push_back(runner.run(job.spec(input), {}));
      auto free = decode_collective(inputs.back());
      free.effort.cpu_s = 0;
      results.push_back(encode(free));
    }
    results.push_back(with_cpu(runner.run(job.spec(task), inputs), cpu_s_of(task)));
    return ComputedAlone{ComputedAlone::State::computed, std::move(results)};
  };
}

constexpr OneByOneLimits kTenSamples{.min_cpu_s = 0, .share_of_elapsed = 1e9, .samples = 10};

}  // namespace

TEST_CASE("if steps take what is expected of them, any sample says what all experiments take one by one") {
  // Two of the seeds make the same step, so that it counts twice.
  const auto sweep = small_sweep("axes: {transport.seed: [1, 2], strategy.micro_batch: [1, 2]}\n");
  const SweepJob job(serialize_job(sweep, {}));
  const Plan& plan = job.plan();
  auto outcomes = run_all(job);
  const auto cost_of = [&](std::uint32_t task) { return plan.steps[task - plan.task_of_step(0)].cost; };
  double expected = 0;
  for (const PlannedStep& step : plan.steps) expected += 3 * step.cost * step.experiments;
  REQUIRE(plan.steps.size() < sweep.experiments.size());
  for (std::uint32_t task = plan.task_of_step(0); task < outcomes.size(); ++task)
    outcomes[task].bytes = with_cpu(outcomes[task].bytes, cost_of(task));
  const auto all =
      estimate_one_by_one(job, looking_into(outcomes), 1,
                          in_new_runners(job, [&](std::uint32_t task) { return 3 * cost_of(task); }), kTenSamples);
  REQUIRE(all);
  CHECK(all->samples == 10);
  CHECK(all->cpu_s == Approx(expected));
  CHECK(all->error_s == Approx(0).margin(1e-9 * expected));
  // If not, the estimate has an error, and says so.
  const auto uneven = estimate_one_by_one(job, looking_into(outcomes), 1,
                                          in_new_runners(job, [](std::uint32_t) { return 1; }), kTenSamples);
  REQUIRE(uneven);
  CHECK(uneven->error_s > 0);
  CHECK(std::abs(uneven->cpu_s - static_cast<double>(sweep.experiments.size())) < 4 * uneven->error_s);
}

TEST_CASE("short runs and those without time for a sample say nothing of their experiments one by one") {
  const auto sweep = small_sweep("");
  const SweepJob job(serialize_job(sweep, {}));
  const auto outcomes = run_all(job);
  const auto never = [](std::uint32_t, std::chrono::duration<double>) {
    FAIL("a sample was computed");
    return ComputedAlone();
  };
  CHECK_FALSE(estimate_one_by_one(job, looking_into(outcomes), 1, never));
  OneByOneLimits limits = kTenSamples;
  limits.samples = 2;
  CHECK_FALSE(estimate_one_by_one(job, looking_into(outcomes), 1, in_new_runners(job, [](std::uint32_t) { return 1; }),
                                  limits));
  const auto dies = [](std::uint32_t, std::chrono::duration<double>) { return ComputedAlone(); };
  CHECK_FALSE(estimate_one_by_one(job, looking_into(outcomes), 1, dies, kTenSamples));
}

TEST_CASE("an experiment that has another result alone than in its sweep ends the run") {
  const auto sweep = small_sweep("");
  const SweepJob job(serialize_job(sweep, {}));
  auto outcomes = run_all(job);
  auto step = core::step::decode_step(outcomes.back().bytes);
  step.step_ps += 1;
  outcomes.back().bytes = core::step::encode(step);
  CHECK_THROWS_AS(estimate_one_by_one(job, looking_into(outcomes), 1,
                                      in_new_runners(job, [](std::uint32_t) { return 1; }), kTenSamples),
                  core::InternalError);
}

TEST_CASE("a pilot tells what all steps take, exactly if each was drawn") {
  const auto sweep = small_sweep("axes: {transport.seed: [1, 2], strategy.micro_batch: [1, 2]}\n");
  const SweepJob job(serialize_job(sweep, {}));
  const Plan& plan = job.plan();
  const auto cost_of = [&](std::uint32_t task) { return plan.steps[task - plan.task_of_step(0)].cost; };
  double expected = 0;
  for (const PlannedStep& step : plan.steps) expected += 3 * step.cost;
  const std::chrono::hours long_enough(1);
  const auto all =
      run_pilot(job, in_new_runners(job, [&](std::uint32_t task) { return 3 * cost_of(task); }), long_enough);
  REQUIRE(all);
  CHECK(all->steps == std::ssize(plan.steps));
  CHECK((all->cpu_s.total == Approx(expected) && all->cpu_s.error == 0));
  CHECK(all->link_hops.total > 0);
  CHECK(all->simulated_link_hops.total <= all->link_hops.total);
}

TEST_CASE("a step that outlasts a pilot makes its total a lower bound, and one that cannot be computed ends it") {
  const auto sweep = small_sweep("");
  const SweepJob job(serialize_job(sweep, {}));
  const auto too_long = [](std::uint32_t, std::chrono::duration<double> at_most) {
    CHECK(at_most > std::chrono::seconds(9));
    ComputedAlone alone;
    alone.state = ComputedAlone::State::too_long;
    return alone;
  };
  const auto cut = run_pilot(job, too_long, std::chrono::seconds(5));
  REQUIRE(cut);
  CHECK((cut->is_cut && cut->samples == 1));
  CHECK_FALSE(run_pilot(
      job, [](std::uint32_t, std::chrono::duration<double>) { return ComputedAlone(); }, std::chrono::seconds(5)));
}
