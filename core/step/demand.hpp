// Whether a world fits into the memory of its GPUs.
#pragma once

#include "core/memory/footprint.hpp"
#include "core/step/configuration.hpp"

namespace manyworlds::core::step {

/// What the rank needs that has least left, and what its GPU has.
struct Demand {
  memory::Footprint needs;
  double memory_gib = 0;
  std::int64_t memory_bytes() const { return static_cast<std::int64_t>(memory_gib * static_cast<double>(1 << 30)); }
};

Demand demand_of(const Configuration& configuration);

/// The dense matrix peak of a GPU in the precision of the layers, on the average over GPUs, TFLOP/s.
double mean_peak_tflops(const Configuration& configuration);

}  // namespace manyworlds::core::step
