#include "core/compute/measured.hpp"

#include <fmt/format.h>

#include "core/compute/gemm.hpp"
#include "core/compute/scan_classes.hpp"

namespace manyworlds::core::compute {

bool is_measurable(const Kernel& kernel) {
  return kernel.expert_tokens.tokens == 0;
}

MeasurementKey measurement_key(const Kernel& kernel) {
  MeasurementKey key;
  key.name = kernel.name;
  key.kernel_class = kernel.kernel_class;
  key.dtype = kernel.dtype;
  key.m = kernel.m;
  key.n = kernel.n;
  key.k = kernel.k;
  key.batch = kernel.batch;
  key.bytes = kernel.bytes;
  key.flops = kernel.flops;
  return key;
}

std::string describe(const MeasurementKey& key) {
  const auto dtype = kDtypeNames.at(static_cast<std::size_t>(key.dtype));
  if (key.level != CostLevel::kernel)
    return fmt::format("{} {} {} {} {} tokens of {}, hidden {}",
                       kCostLevelNames.at(static_cast<std::size_t>(key.level)), key.name,
                       kDirectionNames.at(static_cast<std::size_t>(key.direction)), dtype, key.m, key.n, key.k);
  const auto kind = kKernelClassNames.at(static_cast<std::size_t>(key.kernel_class));
  if (key.kernel_class == KernelClass::memory_bound)
    return fmt::format("{} {} {} {} B", key.name, kind, dtype, key.bytes);
  if (is_scan(key.kernel_class))
    return fmt::format("{} {} {} {} B, {} FLOPs, {} chunks in turn", key.name, kind, dtype, key.bytes, key.flops,
                       key.m);
  return fmt::format("{} {} {} {}x{}x{} batch {}", key.name, kind, dtype, key.m, key.n, key.k, key.batch);
}

const MeasuredTime* MeasuredTimes::find(const MeasurementKey& key) const {
  MeasurementKey row = key;
  for (const bool with_name : {true, false}) {
    if (!with_name && key.level != CostLevel::kernel) continue;
    if (!with_name) row.name.clear();
    for (const std::int64_t bytes : {key.bytes, MeasurementKey::kAny})
      for (const std::int64_t flops : {key.flops, MeasurementKey::kAny}) {
        row.bytes = bytes;
        row.flops = flops;
        if (const auto found = times_.find(row); found != times_.end()) return &found->second;
      }
  }
  return nullptr;
}

MeasuredTimes MeasuredTimes::only(CostLevel level) const {
  MeasuredTimes result;
  for (const auto& [key, time] : times_)
    if (key.level == level) result.times_.emplace(key, time);
  return result;
}

KernelCost kernel_cost(const Kernel& kernel, const Gpu& gpu) {
  if (gpu.measured && is_measurable(kernel))
    if (const MeasuredTime* found = gpu.measured->find(measurement_key(kernel)))
      return {found->time_ps, CostLevel::kernel, TimeBasis::measured};
  return estimated_cost(kernel, gpu);
}

KernelCost estimated_cost(const Kernel& kernel, const Gpu& gpu) {
  const GemmShapes::Correction correction = shape_correction(kernel, gpu);
  return {modelled_time(kernel, gpu, correction.ratio), CostLevel::model, correction.basis};
}

std::size_t kind_of(const Kernel& kernel) {
  if (kernel.kernel_class == KernelClass::gemm) return static_cast<std::size_t>(gemm_format(kernel.dtype));
  return kGemmFormats + static_cast<std::size_t>(kernel.kernel_class) -
         static_cast<std::size_t>(KernelClass::flash_forward);
}

}  // namespace manyworlds::core::compute
