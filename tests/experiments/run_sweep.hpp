// Sweeps we ship, run in the test's process.
#pragma once

#include <map>
#include <string>

#include "core/step/layout/memory_requirement.hpp"
#include "core/step/run/simulation_context.hpp"
#include "core/workload/parts/expert_load.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"

namespace manyworlds::experiments::testing {

struct Ran {
  double step_s = 0, stall_s = 0, recompute_s = 0;
  double exposed_s = 0, slowed_s = 0;  // communication that is waited for; what it slows kernels by
  std::int64_t peak_bytes = 0;
  bool fits = false;
  core::workload::RoutingSummary routing;
};

/// By the values of the axes, joined with blanks.
inline std::map<std::string, Ran> run(const std::string& name) {
  const Sweep sweep = read_sweep(source_folder() + "/experiments/sweeps/" + name);
  std::map<std::string, Ran> all;
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  GraphCache graphs;
  for (const Experiment& experiment : sweep.experiments) {
    std::string label;
    for (std::size_t i = 0; i < experiment.axes.size(); ++i)
      if (!sweep.columns[i].name.starts_with("routing."))  // the routing's own label has it
        label += (label.empty() ? "" : " ") +
                 std::visit([](const auto& value) { return fmt::format("{}", value); }, experiment.axes[i]);
    const auto config = configure(experiment, graphs);
    Ran ran;
    ran.routing = core::workload::routing_summary(config.model, config.strategy);
    const core::step::MemoryRequirement demand = core::step::memory_requirement_of(config);
    ran.peak_bytes = demand.required.total();
    ran.fits = ran.peak_bytes <= demand.memory_bytes();
    if (ran.fits) {
      const auto result = context.run(context.compile(config), results);
      ran.step_s = core::seconds(result.step_ps);
      ran.stall_s =
          result.breakdown[core::workload::StepPart::stall] + result.breakdown[core::workload::StepPart::exposed_ep];
      const auto& b = result.breakdown;
      ran.exposed_s = b[core::workload::StepPart::exposed_tp] + b[core::workload::StepPart::exposed_dp] +
                      b[core::workload::StepPart::exposed_pp] + b[core::workload::StepPart::exposed_cp] +
                      b[core::workload::StepPart::exposed_ep];
      ran.slowed_s = b[core::workload::StepPart::slowed];
      ran.recompute_s = result.breakdown[core::workload::StepPart::recompute];
    }
    all[label] = ran;
  }
  return all;
}

}  // namespace manyworlds::experiments::testing
