#include "experiments/rules/machines/machine_rules.hpp"

#include "core/base/error.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::compute::Gpu;
using core::compute::Precision;

constexpr std::int64_t kMaxGpus = 131'072;

/// Returns the violation of the first GPU kind that has one.
Violation check_every_gpu(const ExperimentConfig& config, const std::function<Violation(const Gpu&)>& check) {
  Violation found = check(config.configuration.gpu);
  for (const Gpu& gpu : config.configuration.other_gpus)
    if (!found) found = check(gpu);
  return found;
}

}  // namespace

std::vector<Rule> machine_rules() {
  return {
      rule("gpus_at_most", "cluster.nodes", fmt::format("nodes x gpus_per_node must be at most {}", kMaxGpus),
           {"limit of this program: room for ranks in its keys"},
           [](const ExperimentConfig& e) -> Violation {
             if (e.cluster.gpus() <= kMaxGpus) return std::nullopt;
             return fmt::format("nodes {}, gpus_per_node {}", e.cluster.nodes, e.cluster.gpus_per_node);
           }),
      rule("node_in_scale_up_domain", "cluster.gpus_per_node",
           "gpus_per_node must be at most the GPU's scale_up_domain, which joins the GPUs of a node", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (e.cluster.gpus_per_node <= e.configuration.gpu.scale_up_domain) return std::nullopt;
             return fmt::format("gpus_per_node {}, scale_up_domain {}", e.cluster.gpus_per_node,
                                e.configuration.gpu.scale_up_domain);
           }),
      rule("idle_below_board", "cluster.gpu.idle_power_w", "idle_power_w must be at most board_power_w",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (!e.power.known() || e.power.idle_power_w <= e.power.board_power_w) return std::nullopt;
             return fmt::format("idle_power_w {}, board_power_w {}", e.power.idle_power_w, e.power.board_power_w);
           }),
  };
}

std::vector<Rule> precision_rules() {
  return {
      rule("precision_on_gpu", "strategy.stack.precision",
           "the precision must be one of the GPU's precisions: its matrix units multiply no other numbers",
           {"the GPU's datasheet, named beside cluster.gpu.precisions in the catalog"},
           [](const ExperimentConfig& e) {
             const Precision precision = e.configuration.strategy.stack.precision;
             return check_every_gpu(e, [&](const Gpu& gpu) -> Violation {
               if ((gpu.precisions & core::compute::bit_of(precision)) != 0) return std::nullopt;
               return fmt::format("precision {}, precisions {}",
                                  core::compute::precision_names()[static_cast<std::size_t>(precision)],
                                  core::join_list(gpu.precisions, core::compute::precision_names()));
             });
           }),
  };
}

std::vector<Rule> mixed_machine_rules() {
  return {
      rule("pcie_rate", "cluster.gpu.scale_up_gb_per_s",
           "with scale_up pcie, scale_up_gb_per_s is the rate of a GPU's PCIe link: at most 128 GB/s, x16 of PCIe 6",
           {"PCI Express Base Specification 6.0: 64 GT/s a lane"},
           [](const ExperimentConfig& e) {
             return check_every_gpu(e, [](const Gpu& gpu) -> Violation {
               constexpr double kFastest = 128;
               if (gpu.scale_up != core::compute::ScaleUp::pcie || gpu.scale_up_gb_per_s <= kFastest)
                 return std::nullopt;
               return fmt::format("scale_up_gb_per_s {}; the copy engines reach the host at host_gb_per_s {}",
                                  gpu.scale_up_gb_per_s, gpu.host_gb_per_s);
             });
           }),
      rule("nics_by_gpus", "cluster.nics_per_node",
           "nics_per_node must divide gpus_per_node or be a multiple of it, on identical nodes and a fabric "
           "that is built, not read from a file",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const std::int64_t nics = e.cluster.nics_per_node, gpus = e.cluster.gpus_per_node;
             if (nics == 0) return std::nullopt;
             const bool divides = gpus % nics == 0 || nics % gpus == 0;
             if (divides && e.machines.empty() && e.topology != "graph") return std::nullopt;
             return fmt::format("nics_per_node {}, gpus_per_node {}, kinds of machines {}, topology {}", nics, gpus,
                                std::max<std::size_t>(e.machines.size(), 1), e.topology);
           }),
      rule("slow_gpus_fit", "faults.slow_gpus", "slow_gpus must name GPUs or nodes that exist, once, with a share",
           {kConstruction},
           [](const ExperimentConfig& e) {
             return e.slow_gpus_error.empty() ? std::nullopt : Violation(e.slow_gpus_error);
           }),
      rule(
          "nodes_match", "cluster",
          "nodes of other kinds must have as many GPUs, joined by a scale_up fabric of the same shape and planes, with "
          "a scale_up_domain for as many",
          {kConstruction},
          [](const ExperimentConfig& e) -> Violation {
            const core::step::Configuration& configuration = e.configuration;
            for (const core::compute::Gpu& gpu : configuration.other_gpus)
              if (gpu.scale_up != configuration.gpu.scale_up ||
                  gpu.scale_up_planes != configuration.gpu.scale_up_planes ||
                  gpu.scale_up_domain < e.cluster.gpus_per_node)
                return fmt::format("scale_up_planes {} and {}, gpus_per_node {}, scale_up_domain {}",
                                   configuration.gpu.scale_up_planes, gpu.scale_up_planes, e.cluster.gpus_per_node,
                                   gpu.scale_up_domain);
            return std::nullopt;
          }),
      rule("measured_on_one_kind", "cluster.gpu.measured_kernels",
           "measured_kernels need identical GPUs: no second kind of node, no slow_gpus", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (!e.has_measured_kernels || e.machines.empty()) return std::nullopt;
             return fmt::format("kinds {}", e.machines.size());
           }),
      rule("schedule_on_one_kind", "strategy.schedule",
           "schedules computed from the costs of passes need identical machines", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& type = core::workload::schedule_type(e.configuration.strategy.schedule);
             if (!type.needs_costs || e.machines.empty()) return std::nullopt;
             return fmt::format("schedule {}, kinds {}", type.name, e.machines.size());
           }),
  };
}

}  // namespace manyworlds::experiments
