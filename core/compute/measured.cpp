#include "core/compute/measured.hpp"

#include <fmt/format.h>

namespace manyworlds::core::compute {

bool can_be_measured(const Kernel& kernel) {
  return kernel.shares.tokens == 0;
}

Measurable measurable(const Kernel& kernel) {
  Measurable made;
  made.name = kernel.name;
  made.kernel_class = kernel.kernel_class;
  made.dtype = kernel.dtype;
  made.m = kernel.m;
  made.n = kernel.n;
  made.k = kernel.k;
  made.batch = kernel.batch;
  made.bytes = kernel.bytes;
  made.flops = kernel.flops;
  return made;
}

std::string describe(const Measurable& of) {
  const auto dtype = kDtypeNames.at(static_cast<std::size_t>(of.dtype));
  if (of.level != Level::kernel)
    return fmt::format("{} {} {} {} {} tokens of {}, hidden {}", kLevelNames.at(static_cast<std::size_t>(of.level)),
                       of.name, kDirectionNames.at(static_cast<std::size_t>(of.direction)), dtype, of.m, of.n, of.k);
  const auto kind = kKernelClassNames.at(static_cast<std::size_t>(of.kernel_class));
  if (of.kernel_class == KernelClass::memory_bound) return fmt::format("{} {} {} {} B", of.name, kind, dtype, of.bytes);
  return fmt::format("{} {} {} {}x{}x{} batch {}", of.name, kind, dtype, of.m, of.n, of.k, of.batch);
}

const MeasuredTime* MeasuredTimes::find(const Measurable& of) const {
  Measurable row = of;
  for (const bool named : {true, false}) {
    if (!named && of.level != Level::kernel) continue;
    if (!named) row.name.clear();
    for (const std::int64_t bytes : {of.bytes, Measurable::kAny})
      for (const std::int64_t flops : {of.flops, Measurable::kAny}) {
        row.bytes = bytes;
        row.flops = flops;
        if (const auto found = times_.find(row); found != times_.end()) return &found->second;
      }
  }
  return nullptr;
}

Price price(const Kernel& kernel, const Gpu& gpu) {
  if (gpu.measured && can_be_measured(kernel))
    if (const MeasuredTime* found = gpu.measured->find(measurable(kernel))) return {found->time_ps, Level::kernel};
  return {cost(kernel, gpu), Level::model};
}

}  // namespace manyworlds::core::compute
