// A lower bound of a training step's time, from sums over one micro-batch. It holds for every fidelity and transport,
// so that a search discards most layouts without simulating them. docs/model/bounds.md has the inequalities.
#pragma once

#include "core/step/estimate/strided_collectives.hpp"
#include "core/step/layout/configuration.hpp"

namespace manyworlds::core::step {

/// Returns a time in picoseconds that no step of the configuration falls below: the largest of what the kernels of each
/// rank, the host that launches them, its communication with replicas, and the filling and draining of the pipeline
/// take at least. Takes tens of microseconds to milliseconds. Sizes must be valid (experiments/rules/validity.hpp).
Time lower_bound_ps(const Configuration& configuration);

/// Returns the fastest rates of a GPU, or of a NIC that GPUs share, and the shortest latencies of a path, inside a node
/// and between nodes.
Links fastest_links(const network::Graph& graph);

}  // namespace manyworlds::core::step
