// A sweep that asks for its best, run in any order by any number of ranks in one thread.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/step/run/result.hpp"
#include "farm/best/best_selection.hpp"
#include "farm/coordinator/task_queue.hpp"
#include "tests/farm/sweep_samples.hpp"

namespace manyworlds::farm::testing {

/// Returns the outcome of a step that takes up to half as long again, as under contention: its bounds are not tight.
inline Outcome slowed(const SweepJob& job, std::uint32_t task, Outcome outcome) {
  if (!job.plan().is_step(task) || !outcome.ok()) return outcome;
  core::step::StepResult step = core::step::decode_step(outcome.bytes);
  step.step_ps += step.step_ps / 2'018 * (step.step_ps % 1'009);
  outcome.bytes = core::step::encode(step);
  return outcome;
}

/// Runs the tasks that are ready in a random order, `at_once` steps open; `known` tasks are settled before, as by a
/// journal.
struct SelectedRun {
  SelectedRun(const SweepJob& of, std::size_t at_once, std::uint32_t seed, const std::vector<std::uint32_t>& known = {},
              bool slow = false)
      : job(of), is_slowed(slow), selection(job, at_once), queue(job.tasks(), &selection) {
    SweepRunner runner(job.common_spec());
    for (const std::uint32_t task : known) settle(task, runner);
    std::mt19937 random(seed);
    while (!queue.complete()) {
      std::vector<std::uint32_t> taken;
      while (const auto task = queue.take()) taken.push_back(*task);
      REQUIRE_FALSE(taken.empty());
      std::shuffle(taken.begin(), taken.end(), random);
      for (const std::uint32_t task : taken) settle(task, runner);
    }
  }
  void settle(std::uint32_t task, SweepRunner& runner) {
    computed.push_back(task);
    const Outcome outcome = run_guarded(runner, job.spec(task), {});
    queue.settle(task, is_slowed ? slowed(job, task, outcome) : outcome);
  }
  SelectedResults selected() const {
    return selected_results(job, [&](std::uint32_t task) -> const Outcome& { return queue.outcome(task); });
  }
  io::Results results() const {
    const SelectedResults selected = this->selected();
    return make_results(job.sweep(), selected.plan, selected.outcome);
  }
  const SweepJob& job;
  const bool is_slowed;
  BestSelection selection;
  TaskQueue queue;
  std::vector<std::uint32_t> computed;
};

inline std::vector<double> times_of(const io::Results& results, const std::string& column) {
  std::vector<double> times;
  for (std::size_t row = 0; row < results.experiments.rows(); ++row)
    times.push_back(results.experiments.find(column)->number_at(row));
  return times;
}

}  // namespace manyworlds::farm::testing
