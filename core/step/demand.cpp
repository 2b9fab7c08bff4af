#include "core/step/demand.hpp"

#include "core/step/layout.hpp"

namespace manyworlds::core::step {

Demand demand_of(const Configuration& configuration) {
  Demand most{{}, configuration.gpu.memory_gib};
  if (!configuration.is_mixed()) {
    most.needs = memory::peak(configuration.model, configuration.strategy, configuration.gpu);
    return most;
  }
  bool any = false;
  for (const auto& [of, ranks] : classes_of(arrangement_of(configuration))) {
    const compute::Gpu& gpu = configuration.gpu_of(of);
    const Demand one{memory::footprint(configuration.model, configuration.strategy, gpu, of), gpu.memory_gib};
    const auto left = [](const Demand& demand) { return demand.memory_bytes() - demand.needs.total(); };
    if (!any || left(one) < left(most)) most = one;
    any = true;
  }
  return most;
}

double mean_matrix_tflops(const Configuration& configuration) {
  if (!configuration.is_mixed()) return configuration.gpu.matrix_tflops;
  double sum = 0;
  for (const std::uint32_t kind : configuration.kind_of_gpu)
    sum += (kind == 0 ? configuration.gpu : configuration.other_gpus.at(kind - 1)).matrix_tflops;
  return sum / static_cast<double>(configuration.kind_of_gpu.size());
}

}  // namespace manyworlds::core::step
