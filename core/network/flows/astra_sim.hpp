// ASTRA-sim 2.x as a comparison model: the time its analytical backends give one collective of the ring algorithm
// (Won et al., "ASTRA-sim2.0", ISPASS 2023, section IV; closed forms of what its event loops do). Nothing but
// `manyworlds net --model astra-sim` uses it: no experiment can select it, and no key depends on it.
#pragma once

#include <cstdint>

#include "core/base/options.hpp"
#include "core/collective/dag/dag.hpp"
#include "core/network/fabric/fabric.hpp"

namespace manyworlds::core::network {

/// What ASTRA-sim's system and memory files say, in its own units. A collective goes in `splits` equal chunks, one
/// after another (one active chunk).
struct AstraSim {
  std::int64_t splits = 4;
  std::int64_t endpoint_delay_ns = 10;
  double memory_gb_per_s = 1600;
};
const OptionTable<AstraSim>& astra_sim_options();

/// The way from a ring's member to the next, which must be alike all around: `hops` links of one kind.
struct AstraSimPath {
  std::int64_t hops = 1;  // 1: a ring or fully connected; 2: over a switch
  std::int64_t bits_per_second = 0;
  Time latency_ps = 0;  // of one link
};

/// The path between neighbours of the ring over GPUs [0, members). Throws InputError where neighbours differ, or the
/// links of one path do: ASTRA-sim's topologies cannot say that.
AstraSimPath astra_sim_path(Router& router, std::uint32_t members);

struct AstraSimTimes {
  Time unaware_ps = 0;  // congestion-unaware backend: a message takes all latencies and one serialisation
  Time aware_ps = 0;    // congestion-aware backend: every link stores a message whole before it sends it on
};

/// Throws InputError for a collective that is no ring, or of which a chunk would be empty.
AstraSimTimes astra_sim(const AstraSim& system, const collective::Shape& shape, const AstraSimPath& path);

}  // namespace manyworlds::core::network
