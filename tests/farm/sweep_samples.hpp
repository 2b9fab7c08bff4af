// What the tests of sweeps in the farm share: sweeps from text, their plans, and a job run in a plain loop.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "farm/plan/sweep_job.hpp"
#include "farm/plan/sweep_runner.hpp"
#include "farm/results/result_tables.hpp"
#include "farm/worker/simulating_worker.hpp"

namespace manyworlds::farm::testing {

/// Eight GPUs in two nodes and a model of a few layers; `rest` goes below `base`.
inline experiments::Sweep small_sweep(const std::string& rest, const std::vector<std::string>& sets = {}) {
  const std::string text =
      "base:\n"
      "  model: {like: gpt3-125m, layers: 4, sequence: 256, vocabulary: 8192}\n"
      "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
      "  strategy: {tp: 2, global_batch: 16}\n" +
      rest;
  return experiments::parse_sweep(text, "small.yaml", sets, experiments::Catalog(),
                                  {.practice = experiments::Practice::of_2021});
}

/// Every task in one loop; with `reversed`, the steps from the last to the first (collectives still before them).
inline std::vector<Outcome> run_all(const SweepJob& job, bool reversed = false) {
  const Plan& plan = job.plan();
  SweepRunner runner(job.common_spec());
  std::vector<std::uint32_t> sequence(job.tasks().size());
  std::iota(sequence.begin(), sequence.end(), 0u);
  const auto steps = sequence.begin() + static_cast<std::ptrdiff_t>(plan.collectives.size());
  if (reversed) std::reverse(sequence.begin(), steps), std::reverse(steps, sequence.end());
  std::vector<Outcome> outcomes(sequence.size());
  for (const std::uint32_t task : sequence) {
    std::vector<std::string> inputs;
    for (const auto input : job.tasks()[task].inputs) inputs.push_back(outcomes[input].bytes);
    outcomes[task] = run_guarded(runner, job.spec(task), inputs);
  }
  return outcomes;
}

inline OutcomeOf looking_into(const std::vector<Outcome>& outcomes) {
  return [&outcomes](std::uint32_t task) -> const Outcome& { return outcomes.at(task); };
}

}  // namespace manyworlds::farm::testing
