#include "experiments/machine_rules.hpp"

#include "core/error.hpp"

namespace manyworlds::experiments {

std::vector<Rule> mixed_machine_rules() {
  return {
      rule("slow_gpus_fit", "faults.slow_gpus", "slow_gpus must name GPUs or nodes that exist, once, with a share",
           [](const World& w) { return w.machine_fault.empty() ? std::nullopt : Broken(w.machine_fault); }),
      rule(
          "nodes_alike", "cluster",
          "nodes of other kinds must have as many GPUs, joined by a scale_up fabric of the same shape and planes, with "
          "a scale_up_domain for as many",
          [](const World& w) -> Broken {
            const core::step::Configuration& of = w.configuration;
            for (const core::compute::Gpu& gpu : of.other_gpus)
              if (gpu.scale_up != of.gpu.scale_up || gpu.scale_up_planes != of.gpu.scale_up_planes ||
                  gpu.scale_up_domain < w.cluster.gpus_per_node)
                return fmt::format("scale_up_planes {} and {}, gpus_per_node {}, scale_up_domain {}",
                                   of.gpu.scale_up_planes, gpu.scale_up_planes, w.cluster.gpus_per_node,
                                   gpu.scale_up_domain);
            return std::nullopt;
          }),
      rule("measured_on_one_kind", "cluster.gpu.measured_kernels",
           "measured_kernels are of GPUs that are all alike: no second kind of node, no slow_gpus",
           [](const World& w) -> Broken {
             if (!w.measures_kernels || w.machines.empty()) return std::nullopt;
             return fmt::format("kinds {}", w.machines.size());
           }),
      rule("schedule_on_one_kind", "strategy.schedule",
           "schedules that are made from what passes cost need machines that are all alike",
           [](const World& w) -> Broken {
             const auto& type = core::workload::schedule_type(w.configuration.strategy.schedule);
             if (!type.asks_costs || w.machines.empty()) return std::nullopt;
             return fmt::format("schedule {}, kinds {}", type.name, w.machines.size());
           }),
  };
}

}  // namespace manyworlds::experiments
