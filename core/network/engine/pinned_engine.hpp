// The base of the event-driven and the time-sliced engine: the parameters of a link, and the size, the path and the
// window of a flow.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/error.hpp"
#include "core/network/engine/ecn_marking.hpp"
#include "core/network/engine/engine.hpp"
#include "core/network/engine/sender_protocol.hpp"

namespace manyworlds::core::network {

template <SenderProtocol P>
class PinnedEngine : public Engine {
 protected:
  PinnedEngine(const Transport& transport, const typename P::Parameters& parameters, bool ecn_enabled)
      : transport_(transport),
        parameters_(parameters),
        packet_bytes_(transport.payload_bytes + transport.header_bytes),
        ecn_enabled_(ecn_enabled) {}

  template <class Port>
  void set_link_parameters(Port& port, const LinkSpec& spec) const {
    port.spec = spec;
    port.full_packet_ps = serialization_ps(packet_bytes_, spec.bits_per_second);
    port.control_ps = spec.latency_ps + serialization_ps(transport_.ack_bytes, spec.bits_per_second);
    port.kmin = scaled_to_rate(transport_.ecn_kmin_bytes, spec.bits_per_second);
    port.kmax = scaled_to_rate(transport_.ecn_kmax_bytes, spec.bits_per_second);
  }

  template <class Flow>
  void set_size(Flow& flow, std::int64_t bytes) const {
    const std::int64_t packets = packets_of(transport_, bytes);
    MANYWORLDS_CHECK(packets < (1ll << 32), "{} packets", packets);
    flow.remaining = static_cast<std::uint32_t>(packets);
    flow.last_bytes = bytes - (packets - 1) * transport_.payload_bytes + transport_.header_bytes;
  }
  template <class Flow, class Ports>
  static void set_path(Flow& flow, const Route& route, const Ports& ports) {
    MANYWORLDS_CHECK(route.size() <= kMaxHops, "a path of {} links", route.size());
    flow.hops = static_cast<std::uint32_t>(route.size());
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
      const auto& port = ports[flow.path[hop] = route[hop]];
      flow.ack_ps += port.control_ps;
      flow.uses_cc |= !port.spec.scale_up;
    }
  }
  template <class Flow, class Ports>
  PathInfo path_info(const Flow& flow, const Ports& ports) const {
    PathInfo info;
    info.line_bits_per_second = ports[flow.path[0]].spec.bits_per_second;
    info.packet_bytes = packet_bytes_;
    info.hops = flow.hops;
    info.base_rtt_ps = flow.ack_ps;
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop)
      info.base_rtt_ps += ports[flow.path[hop]].full_packet_ps + ports[flow.path[hop]].spec.latency_ps;
    return info;
  }
  /// Initializes the sender of a flow whose size and path are set.
  template <class Flow, class Ports>
  void init_sender(Flow& flow, const Ports& ports, Time now) const {
    if (flow.uses_cc) flow.sender.start(parameters_, path_info(flow, ports), now);
    flow.counts_acks = window_of(flow) != kNoWindow || (P::kNeeds.acks && flow.uses_cc);
  }

  template <class Flow>
  std::int64_t window_of(const Flow& flow) const {
    return flow.uses_cc ? flow.sender.window_bytes() : transport_.window_bytes;
  }
  template <class Flow>
  bool fits_window(const Flow& flow) const {
    return flow.unacked == 0 || (flow.unacked + std::int64_t{1}) * packet_bytes_ <= window_of(flow);
  }
  /// Returns whether acks in flight can still affect the flow.
  template <class Flow>
  bool acks_matter(const Flow& flow) const {
    if (!flow.counts_acks || flow.remaining == 0) return false;
    if (P::kNeeds.acks && flow.uses_cc) return true;
    return (flow.unacked + static_cast<std::int64_t>(flow.remaining)) * packet_bytes_ > window_of(flow);
  }

  Transport transport_;
  typename P::Parameters parameters_;
  std::int64_t packet_bytes_;  // size of a full packet, including headers
  bool ecn_enabled_;
};

}  // namespace manyworlds::core::network
