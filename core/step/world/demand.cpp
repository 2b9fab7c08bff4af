#include "core/step/world/demand.hpp"

#include "core/step/world/layout.hpp"

namespace manyworlds::core::step {

double usable_memory_gib(const Configuration& configuration, const compute::Gpu& gpu) {
  return gpu.memory_gib * (1 - configuration.memory_headroom);
}

Demand demand_of(const Configuration& configuration) {
  Demand most{{}, usable_memory_gib(configuration, configuration.gpu)};
  if (!configuration.is_mixed()) {
    most.needs = memory::peak(configuration.model, configuration.strategy, configuration.gpu);
    return most;
  }
  bool any = false;
  for (const auto& [of, ranks] : classes_of(arrangement_of(configuration))) {
    const compute::Gpu& gpu = configuration.gpu_of(of);
    const Demand one{memory::footprint(configuration.model, configuration.strategy, gpu, of),
                     usable_memory_gib(configuration, gpu)};
    const auto left = [](const Demand& demand) { return demand.memory_bytes() - demand.needs.total(); };
    if (!any || left(one) < left(most)) most = one;
    any = true;
  }
  return most;
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
