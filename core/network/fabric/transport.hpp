// Configuration of the senders, switches and routing of a network. Sizes are in bytes, times in picoseconds.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "core/base/units.hpp"

namespace manyworlds::core::network {

/// packet: simulates every packet on every link. analytic: the alpha-beta model on the same routes, a lower bound
/// (analytic_flows.cpp). fluid: collectives of a step share links max-min fairly (core/step/fluid/fluid_network.cpp).
enum class Fidelity : std::uint8_t { packet, analytic, fluid };
/// Returns the names of fidelities, in the order of Fidelity.
const std::vector<std::string>& fidelity_names();
inline const std::string& name_of(Fidelity fidelity) {
  return fidelity_names()[static_cast<std::size_t>(fidelity)];
}

/// The first two policies pin a transfer to one path. The others choose a path for every packet (spray: at random;
/// adaptive: at every switch the port with the shortest queue) or for every burst (flowlet).
enum class Routing : std::uint8_t { destination_mod_k, ecmp_hash, spray, adaptive, flowlet };
/// What switches hash a connection's five-tuple with under Routing::ecmp_hash. per_hop: a seed for each hop, so that
/// all switches of one tier decide alike, and tiers independently of each other. per_switch: a seed of its own in every
/// switch. same: one function everywhere, as in switches of one vendor that nobody gave seeds, so that a tier decides
/// by the hash that has brought packets there (hash polarisation; Xu et al., USENIX ATC 2022).
enum class HashSeeds : std::uint8_t { per_hop, per_switch, same };
/// With which probability Routing::ecmp_hash takes a next hop: all alike, or in proportion to its rate and to that of
/// what lies behind it (WCMP: Zhou et al., EuroSys 2014; see Router).
enum class PathWeights : std::uint8_t { equal, rate };
/// Acknowledgements are a pure delay that occupies no link (coalesced), or packets on the reverse path (in_band).
enum class Acks : std::uint8_t { coalesced, in_band };
/// Queues pause their upstream senders (PFC), or drop packets that do not fit.
enum class Fabric : std::uint8_t { lossless, lossy };

/// The defaults are packets of 4 KiB payload, as in RoCE at MTU 4096, and DCQCN as in Zhu et al., SIGCOMM 2015, section
/// 5 and table 14, with ECN thresholds scaled to the link rate as in the set-up of HPCC (SIGCOMM 2019, section 5.1).
struct Transport {
  Fidelity fidelity = Fidelity::packet;
  std::string kind = "static_window";  // name of an entry of transports() in transports/registry.hpp
  OptionSet kind_options;              // options of that kind; absent options have their defaults
  Routing routing = Routing::destination_mod_k;
  HashSeeds ecmp_hash_seeds = HashSeeds::per_hop;
  PathWeights ecmp_weights = PathWeights::equal;
  Acks acks = Acks::coalesced;
  Fabric fabric = Fabric::lossless;
  std::int64_t payload_bytes = 4096;
  std::int64_t header_bytes = 64;
  std::int64_t ack_bytes = 64;            // coalesced acks only delay; they occupy no link
  std::int64_t window_bytes = 4 << 20;    // static window of one transfer: 900 GB/s for 4 us
  std::int64_t pfc_xoff_bytes = 400'000;  // PFC XOFF: pause above this, per ingress link
  std::int64_t pfc_xon_bytes = 300'000;   // PFC XON: resume at or below this
  std::int64_t buffer_bytes = 4'000'000;  // buffer per ingress link; must hold XOFF and the headroom
  std::int64_t ecn_kmin_bytes = 100'000;  // per egress queue at 100 Gb/s; scaled with the link rate
  std::int64_t ecn_kmax_bytes = 400'000;
  std::int64_t ecn_pmax_ppm = 200'000;  // share of packets marked at kmax, parts per million
  std::int64_t queue_bytes = 145'600;   // queue of a port that drops or trims: 35 full packets
  std::int64_t seed = 1;                // seed of hashed decisions
  std::int64_t rate_tolerance_ppm = 0;  // tolerance of fast-forwarding by rate (fast_forward.hpp); 0: off

  bool operator==(const Transport&) const = default;
};

/// What decides over the paths of transfers.
struct PathChoice {
  Routing routing = Routing::destination_mod_k;
  std::uint64_t seed = 1;
  HashSeeds seeds = HashSeeds::per_hop;
  PathWeights weights = PathWeights::equal;
  bool is_hashed_as_ever() const { return seeds == HashSeeds::per_hop && weights == PathWeights::equal; }
  auto operator<=>(const PathChoice&) const = default;
};
inline PathChoice path_choice_of(const Transport& transport) {
  return {transport.routing, static_cast<std::uint64_t>(transport.seed), transport.ecmp_hash_seeds,
          transport.ecmp_weights};
}

/// Returns the options that all transports share; the registry entry of a transport lists those that affect it.
const OptionTable<Transport>& transport_options();

/// Returns the number of packets of a transfer; an empty transfer is one packet without payload.
constexpr std::int64_t packets_of(const Transport& transport, std::int64_t bytes) {
  return std::max<std::int64_t>(1, (bytes + transport.payload_bytes - 1) / transport.payload_bytes);
}

}  // namespace manyworlds::core::network
