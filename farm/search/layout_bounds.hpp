// What is known of the layouts of a search before any is simulated: whether they fit, and how fast they can be at most.
#pragma once

#include <cstddef>
#include <vector>

#include "experiments/sweep/experiment.hpp"

namespace manyworlds::farm {

/// The layouts that fit into memory, fastest bound first; equal bounds in the order of the sweep.
struct BoundedLayouts {
  std::vector<std::size_t> order;  // indices into Sweep::experiments
  std::vector<double> rates;       // upper bounds of their tokens per second and GPU (core/step/estimate)

  /// Returns how many of them may be faster than `rate`.
  std::size_t faster_than(double rate) const;
};

/// Uses one thread per available CPU. Throws InputError, naming the experiment, for one that cannot be configured.
BoundedLayouts bounded_layouts(const experiments::Sweep& sweep);

}  // namespace manyworlds::farm
