// Whether a world fits into the memory of its GPUs.
#pragma once

#include "core/memory/footprint.hpp"
#include "core/step/world/configuration.hpp"

namespace manyworlds::core::step {

/// What the rank needs that has least left, and what it can have of its GPU's memory.
struct Demand {
  memory::Footprint needs;
  double memory_gib = 0;
  std::int64_t memory_bytes() const { return static_cast<std::int64_t>(memory_gib * static_cast<double>(1 << 30)); }
};

/// What a process can have of the memory of such a GPU there, GiB.
double usable_memory_gib(const Configuration& configuration, const compute::Gpu& gpu);

Demand demand_of(const Configuration& configuration);

/// The dense matrix peak of a GPU in the precision of the layers, on the average over GPUs, TFLOP/s.
double mean_peak_tflops(const Configuration& configuration);

}  // namespace manyworlds::core::step
