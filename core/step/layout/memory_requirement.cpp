#include "core/step/layout/memory_requirement.hpp"

#include <algorithm>
#include <limits>

#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {

double usable_memory_gib(const Configuration& configuration, const compute::Gpu& gpu) {
  return gpu.memory_gib * (1 - configuration.memory_headroom);
}

MemoryRequirement memory_requirement_of(const Configuration& configuration) {
  MemoryRequirement tightest{{}, usable_memory_gib(configuration, configuration.gpu)};
  if (configuration.programs) {
    for (std::uint32_t program = 0; program < configuration.programs->programs.size(); ++program)
      tightest.required.program = std::max(tightest.required.program, configuration.programs->peak_bytes(program));
    return tightest;
  }
  if (!configuration.is_mixed()) {
    tightest.required = memory::peak(configuration.model, configuration.strategy, configuration.gpu);
    return tightest;
  }
  bool any = false;
  for (const auto& [rank_class, ranks] : classes_of(parallel_config_of(configuration))) {
    const compute::Gpu& gpu = configuration.gpu_of(rank_class);
    const MemoryRequirement candidate{memory::footprint(configuration.model, configuration.strategy, gpu, rank_class),
                                      usable_memory_gib(configuration, gpu)};
    const auto free_bytes = [](const MemoryRequirement& demand) {
      return demand.memory_bytes() - demand.required.total();
    };
    if (!any || free_bytes(candidate) < free_bytes(tightest)) tightest = candidate;
    any = true;
  }
  return tightest;
}

double tokens_per_step(const Configuration& configuration) {
  if (!configuration.programs)
    return static_cast<double>(configuration.strategy.global_batch) * static_cast<double>(configuration.model.sequence);
  const double tokens = configuration.programs->tokens_per_step;
  return tokens > 0 ? tokens : std::numeric_limits<double>::quiet_NaN();
}

double mean_peak_tflops(const Configuration& configuration) {
  const compute::Precision precision = configuration.strategy.stack.precision;
  if (!configuration.is_mixed()) return compute::peak_tflops(configuration.gpu, precision);
  double sum = 0;
  for (const std::uint32_t kind : configuration.kind_of_gpu)
    sum += compute::peak_tflops(kind == 0 ? configuration.gpu : configuration.other_gpus.at(kind - 1), precision);
  return sum / static_cast<double>(configuration.kind_of_gpu.size());
}

}  // namespace manyworlds::core::step
