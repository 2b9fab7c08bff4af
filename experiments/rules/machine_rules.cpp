#include "experiments/rules/machine_rules.hpp"

#include "core/base/error.hpp"

namespace manyworlds::experiments {
namespace {

using core::compute::Gpu;
using core::compute::Precision;

/// What the first GPU of any kind says that says something.
Broken of_any_gpu(const World& world, const std::function<Broken(const Gpu&)>& check) {
  Broken found = check(world.configuration.gpu);
  for (const Gpu& gpu : world.configuration.other_gpus)
    if (!found) found = check(gpu);
  return found;
}

}  // namespace

std::vector<Rule> precision_rules() {
  return {
      rule("precision_on_gpu", "strategy.stack.precision",
           "the precision must be one of the GPU's precisions: its matrix units multiply no other numbers",
           [](const World& w) {
             const Precision precision = w.configuration.strategy.stack.precision;
             return of_any_gpu(w, [&](const Gpu& gpu) -> Broken {
               if ((gpu.precisions & core::compute::bit_of(precision)) != 0) return std::nullopt;
               return fmt::format("precision {}, precisions {}",
                                  core::compute::precision_names()[static_cast<std::size_t>(precision)],
                                  core::join_several(gpu.precisions, core::compute::precision_names()));
             });
           }),
      rule("gemms_below_peak", "cluster.gpu.gemm_efficiency",
           "GEMMs must not be faster than the matrix peak: gemm_efficiency x fp8_gain x matrix_tflops at most "
           "fp8_tflops "
           "(0: 2 x matrix_tflops), and x fp4_gain at most fp4_tflops (0: 4 x matrix_tflops)",
           [](const World& w) {
             const Precision precision = w.configuration.strategy.stack.precision;
             return of_any_gpu(w, [&](const Gpu& gpu) -> Broken {
               double rate = gpu.matrix_tflops * gpu.gemm_efficiency;
               if (precision >= Precision::fp8) rate *= gpu.fp8_gain;
               if (precision == Precision::nvfp4) rate *= gpu.fp4_gain;
               const double peak = core::compute::peak_tflops(gpu, precision);
               if (rate <= peak) return std::nullopt;
               return fmt::format("main loops at {:.1f} TFLOP/s, the peak is {:.1f}", rate, peak);
             });
           }),
  };
}

std::vector<Rule> mixed_machine_rules() {
  return {
      rule("pcie_rate", "cluster.gpu.scale_up_gb_per_s",
           "with scale_up pcie, scale_up_gb_per_s is the rate of a GPU's PCIe link: at most 128 GB/s, x16 of PCIe 6",
           [](const World& w) {
             return of_any_gpu(w, [](const Gpu& gpu) -> Broken {
               constexpr double kFastest = 128;
               if (gpu.scale_up != core::compute::ScaleUp::pcie || gpu.scale_up_gb_per_s <= kFastest)
                 return std::nullopt;
               return fmt::format("scale_up_gb_per_s {}; the copy engines reach the host at host_gb_per_s {}",
                                  gpu.scale_up_gb_per_s, gpu.host_gb_per_s);
             });
           }),
      rule("nics_by_gpus", "cluster.nics_per_node",
           "nics_per_node must divide gpus_per_node or be a multiple of it, on nodes that are all alike and a fabric "
           "that is built, not read from a file",
           [](const World& w) -> Broken {
             const std::int64_t nics = w.cluster.nics_per_node, gpus = w.cluster.gpus_per_node;
             if (nics == 0) return std::nullopt;
             const bool divides = gpus % nics == 0 || nics % gpus == 0;
             if (divides && w.machines.empty() && w.topology != "graph") return std::nullopt;
             return fmt::format("nics_per_node {}, gpus_per_node {}, kinds of machines {}, topology {}", nics, gpus,
                                std::max<std::size_t>(w.machines.size(), 1), w.topology);
           }),
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
