// Whether a configuration fits into the memory of its GPUs.
#pragma once

#include "core/memory/footprint.hpp"
#include "core/step/layout/configuration.hpp"

namespace manyworlds::core::step {

/// The memory footprint of the rank with the least memory left free, and the memory of its GPU that it may use.
struct MemoryRequirement {
  memory::Footprint required;
  double memory_gib = 0;
  std::int64_t memory_bytes() const { return static_cast<std::int64_t>(memory_gib * static_cast<double>(1 << 30)); }
};

/// Returns the memory of a GPU that a process may use under the configured headroom, in GiB.
double usable_memory_gib(const Configuration& configuration, const compute::Gpu& gpu);

/// Returns the requirement of the most constrained rank.
MemoryRequirement memory_requirement_of(const Configuration& configuration);

/// Returns the tokens that a step trains on all ranks together; NaN if given programs do not say it.
double tokens_per_step(const Configuration& configuration);

/// Returns the dense matrix peak in the precision of the layers, averaged over GPUs, in TFLOP/s.
double mean_peak_tflops(const Configuration& configuration);

}  // namespace manyworlds::core::step
