// What the senders, switches and routes of a network do: sizes in bytes, times in picoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/base/options.hpp"
#include "core/base/units.hpp"

namespace manyworlds::core::network {

/// packet: every packet on every link. analytic: alpha-beta on the same routes, a lower bound (analytic_flows.cpp).
enum class Fidelity : std::uint8_t { packet, analytic };
/// The first two pin a transfer to one path; the others choose for every packet (spray: at random; adaptive: at every
/// switch the way with least in front of it) or for every burst (flowlet).
enum class Routing : std::uint8_t { destination_mod_k, ecmp_hash, spray, adaptive, flowlet };
/// Acknowledgements as delay that occupies nothing, or as packets on the way back.
enum class Acks : std::uint8_t { coalesced, in_band };
/// Queues that pause who fills them (PFC), or that drop what does not fit.
enum class Fabric : std::uint8_t { lossless, lossy };

/// Defaults: packets of 4 KiB payload as RoCE at MTU 4096; DCQCN of Zhu et al., SIGCOMM 2015, section 5 and table 14,
/// with marking thresholds scaled to the link rate as HPCC's (SIGCOMM 2019, section 5.1) set-up does.
struct Transport {
  Fidelity fidelity = Fidelity::packet;
  std::string kind = "static_window";  // a name of transports(), see transports/registry.hpp
  OptionSet own;                       // options of that kind; what is absent has its default
  Routing routing = Routing::destination_mod_k;
  Acks acks = Acks::coalesced;
  Fabric fabric = Fabric::lossless;
  std::int64_t payload_bytes = 4096;
  std::int64_t header_bytes = 64;
  std::int64_t ack_bytes = 64;            // coalesced: delivered as delay, occupies no link
  std::int64_t window_bytes = 1 << 20;    // static window, per transfer
  std::int64_t pfc_xoff_bytes = 400'000;  // per ingress link: pause above
  std::int64_t pfc_xon_bytes = 300'000;   // resume at or below
  std::int64_t buffer_bytes = 4'000'000;  // per ingress link; must hold xoff and the headroom
  std::int64_t ecn_kmin_bytes = 100'000;  // per egress queue, at 100 Gb/s; scales with the link rate
  std::int64_t ecn_kmax_bytes = 400'000;
  std::int64_t ecn_pmax_ppm = 200'000;  // marking share at kmax, parts per million
  std::int64_t queue_bytes = 145'600;   // of a port that drops or trims: 35 full packets
  std::int64_t seed = 1;                // of hashed decisions
  std::int64_t rate_tolerance_ppm = 0;  // what does not recur may be passed over by rate (stretch.hpp); 0: never

  bool operator==(const Transport&) const = default;
};

/// Options that all kinds have in common; which of them mean anything to a kind, its entry in the registry says.
const OptionTable<Transport>& transport_options();

/// Packets of a transfer; an empty one is a single header.
constexpr std::int64_t packets_of(const Transport& transport, std::int64_t bytes) {
  return std::max<std::int64_t>(1, (bytes + transport.payload_bytes - 1) / transport.payload_bytes);
}

}  // namespace manyworlds::core::network
