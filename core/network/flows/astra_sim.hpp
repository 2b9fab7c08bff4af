// ASTRA-sim 2.x as a comparison model: the time that its analytical backends give for one collective with the ring
// algorithm (Won et al., "ASTRA-sim2.0", ISPASS 2023, section IV), as closed forms of its event loops. It is used only
// by `manyworlds net --model astra-sim`: no experiment can select it, and no cache key depends on it.
#pragma once

#include <cstdint>

#include "core/base/options.hpp"
#include "core/collective/dag/dag.hpp"
#include "core/network/fabric/router.hpp"

namespace manyworlds::core::network {

/// The values of ASTRA-sim's system and memory configuration files, in its units. A collective is divided into `splits`
/// equal chunks, which run one after another (one active chunk).
struct AstraSim {
  std::int64_t splits = 4;
  std::int64_t endpoint_delay_ns = 10;
  double memory_gb_per_s = 1600;
};
const OptionTable<AstraSim>& astra_sim_options();

/// The path from a member of the ring to the next one: `hops` equal links. It must be the same for all neighbours.
struct AstraSimPath {
  std::int64_t hops = 1;  // 1: a ring or fully connected; 2: over a switch
  std::int64_t bits_per_second = 0;
  Time latency_ps = 0;  // latency of one link
};

/// Returns the path between neighbours of the ring over GPUs [0, members). Throws InputError if the paths of neighbours
/// or the links of one path differ, which ASTRA-sim's topologies cannot express.
AstraSimPath astra_sim_path(Router& router, std::uint32_t members);

struct AstraSimTimes {
  Time unaware_ps = 0;  // congestion-unaware backend: a message takes all latencies and one serialisation
  Time aware_ps = 0;    // congestion-aware backend: every link receives a whole message before it forwards it
};

/// Returns the time of a collective on a path. Throws InputError for a collective that does not use the ring algorithm
/// or whose messages would be empty.
AstraSimTimes astra_sim(const AstraSim& system, const collective::Shape& shape, const AstraSimPath& path);

}  // namespace manyworlds::core::network
