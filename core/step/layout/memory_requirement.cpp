#include "core/step/layout/memory_requirement.hpp"

#include <algorithm>
#include <limits>

#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {

double usable_memory_gib(const Configuration& configuration, const compute::Gpu& gpu) {
  return gpu.memory_gib * (1 - configuration.memory_headroom);
}

namespace {

memory::Footprint footprint_of(const Configuration& configuration, const compute::Gpu& gpu,
                               const workload::RankClass& rank_class) {
  if (!configuration.programs) return memory::footprint(configuration.model, configuration.strategy, gpu, rank_class);
  memory::Footprint allocated;
  allocated.program = configuration.programs->peak_bytes(static_cast<std::uint32_t>(rank_class.stage));
  return allocated;
}

/// Returns the classes of ranks, each of one GPU, whose footprints may differ.
std::vector<workload::RankClass> classes_to_fit(const Configuration& configuration) {
  std::vector<workload::RankClass> classes;
  if (configuration.is_mixed())
    for (const auto& [rank_class, ranks] : classes_of(parallel_config_of(configuration))) classes.push_back(rank_class);
  else
    for (std::size_t i = 0; i < configuration.programs->programs.size(); ++i)
      classes.emplace_back(static_cast<std::int64_t>(i));
  return classes;
}

}  // namespace

MemoryRequirement memory_requirement_of(const Configuration& configuration) {
  if (!configuration.programs && !configuration.is_mixed())
    return {memory::peak(configuration.model, configuration.strategy, configuration.gpu),
            usable_memory_gib(configuration, configuration.gpu)};
  MemoryRequirement tightest{{}, usable_memory_gib(configuration, configuration.gpu)};
  bool any = false;
  for (const workload::RankClass& rank_class : classes_to_fit(configuration)) {
    const compute::Gpu& gpu = configuration.gpu_of(rank_class);
    const MemoryRequirement candidate{footprint_of(configuration, gpu, rank_class),
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
