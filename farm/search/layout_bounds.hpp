// What is known of the layouts of a search before any is simulated: whether they fit, and how fast they can be at most.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "experiments/sweep/experiment.hpp"

namespace manyworlds::farm {

/// The layouts that fit into memory, fastest bound first; equal bounds in the order of the sweep.
struct BoundedLayouts {
  std::vector<std::size_t> order;  // indices into Sweep::experiments
  std::vector<double> rates;       // upper bounds of their tokens per second and GPU (core/step/estimate)
  std::size_t unknown = 0;         // layouts that there was no time to look at, which are in neither

  /// Returns how many of them may be faster than `rate`.
  std::size_t faster_than(double rate) const;
};

/// Uses one thread per available CPU. With `until`, layouts are looked at in random order, until then. Throws
/// InputError, naming the experiment, for one that cannot be configured.
BoundedLayouts bounded_layouts(const experiments::Sweep& sweep,
                               std::optional<std::chrono::steady_clock::time_point> until = {});

}  // namespace manyworlds::farm
