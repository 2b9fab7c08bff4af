// The error of fluid fidelity, measured: some of the collectives that shared links are simulated again with those that
// were in their way, packet by packet and as fluids, and their durations are compared.
#pragma once

#include <cstdint>
#include <vector>

#include "core/network/flows/component_cache.hpp"
#include "core/step/fluid/fluid_network.hpp"

namespace manyworlds::core::step {

/// How far durations of fluids are from those of packets, as shares of the latter.
struct FluidError {
  std::int64_t contended = 0;  // collectives of the step that shared links and were slower for it
  std::int64_t sampled = 0;    // collectives that were simulated both ways
  double mean = 0;             // of the differences, without sign
  double bias = 0;             // of the differences; above 0: fluids take longer
  double max = 0;              // the largest difference, without sign
  double step = 0;  // by which share the step is longer if every collective that is slower takes `mean` longer still
};

/// As many collectives as the configuration says are drawn by hash, so that the error is a function of the step; one
/// that stands for several is as likely as all of them. Each is simulated, on the links of one of the groups that it
/// stands for, with those that ran at the same time and shared a link with it, as many as together do not exceed the
/// configured link-hops; one that does by itself is not drawn. All members enter at once. `packets` is a cache of the
/// step's transport at packet fidelity, `efficiency` is that of the transport. FluidError::step is left at 0.
FluidError measure_fluid_error(const CompiledStep& compiled, const std::vector<ContendedCollective>& contended,
                               DagCache& dags, network::ComponentCache& packets, TransportEfficiency& efficiency);

}  // namespace manyworlds::core::step
