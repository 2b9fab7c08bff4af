// The times of a calibrated library: what a collective costs beside its transfers, by protocol. The wire is part of the
// measured latencies, so that of the communicator's paths is subtracted.
#pragma once

#include "core/collective/algorithms/communicator.hpp"
#include "core/collective/dag/dag.hpp"
#include "core/collective/library/calibration.hpp"

namespace manyworlds::core::collective {

/// Slices of a block that are in flight on a connection of a ring.
inline constexpr double kSlicesInFlight = 2;

/// Returns the time of a ring of `steps` in which each block takes `block` on the link and `hop` before it, if the
/// slices of a block overlap in `hop` and share the link. It is the exact time of that DAG: either every step waits for
/// the first slice, or the link is always busy. All in one unit.
constexpr double pipeline(double steps, double hop, double block) {
  const double slice = block / kSlicesInFlight;
  const double waiting = steps * (hop + slice) + (kSlicesInFlight - 1) * slice, busy = hop + steps * block;
  return waiting > busy ? waiting : busy;
}

/// Returns the bytes of one chunk of a reduction in switches of `bytes` among `members`, by NCCL's rule.
std::int64_t in_switch_chunk(Architecture architecture, std::int64_t members, std::int64_t bytes);

/// Returns the costs of a shape whose protocol is calibrated. `chosen` is the algorithm whose latencies count: a ring
/// through many nodes is carried out by the two-level algorithm, with equally many bytes per NIC. Throws InputError if
/// the GPU is not calibrated for it.
ProtocolCosts calibrated_costs(const Calibration& calibration, LibraryVersion version, const Communicator& communicator,
                               const Shape& shape, Algorithm chosen);

}  // namespace manyworlds::core::collective
