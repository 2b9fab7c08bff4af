// What engines for pinned paths have in common, with an event queue or without: the figures of a link, and of a flow
// its size, its path and its window.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/error.hpp"
#include "core/network/engine/engine.hpp"
#include "core/network/engine/marking.hpp"
#include "core/network/engine/protocol.hpp"

namespace manyworlds::core::network {

template <Protocol P>
class PinnedEngine : public Engine {
 protected:
  PinnedEngine(const Transport& transport, const typename P::Parameters& parameters, bool marks)
      : transport_(transport),
        parameters_(parameters),
        packet_bytes_(transport.payload_bytes + transport.header_bytes),
        marks_(marks) {}

  template <class Port>
  void take_figures(Port& port, const LinkSpec& spec) const {
    port.spec = spec;
    port.full_packet_ps = serialization_ps(packet_bytes_, spec.bits_per_second);
    port.control_ps = spec.latency_ps + serialization_ps(transport_.ack_bytes, spec.bits_per_second);
    port.kmin = at_rate(transport_.ecn_kmin_bytes, spec.bits_per_second);
    port.kmax = at_rate(transport_.ecn_kmax_bytes, spec.bits_per_second);
  }

  template <class Flow>
  void take_size(Flow& flow, std::int64_t bytes) const {
    const std::int64_t packets = packets_of(transport_, bytes);
    MANYWORLDS_CHECK(packets < (1ll << 32), "{} packets", packets);
    flow.left = static_cast<std::uint32_t>(packets);
    flow.last_bytes = bytes - (packets - 1) * transport_.payload_bytes + transport_.header_bytes;
  }
  template <class Flow, class Ports>
  static void take_path(Flow& flow, const Route& route, const Ports& ports) {
    MANYWORLDS_CHECK(route.size() <= kMaxHops, "a path of {} links", route.size());
    flow.hops = static_cast<std::uint32_t>(route.size());
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
      const auto& port = ports[flow.path[hop] = route[hop]];
      flow.ack_ps += port.control_ps;
      flow.managed |= !port.spec.scale_up;
    }
  }
  template <class Flow, class Ports>
  PathFacts facts_of(const Flow& flow, const Ports& ports) const {
    PathFacts facts;
    facts.line_bits_per_second = ports[flow.path[0]].spec.bits_per_second;
    facts.packet_bytes = packet_bytes_;
    facts.hops = flow.hops;
    facts.base_rtt_ps = flow.ack_ps;
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop)
      facts.base_rtt_ps += ports[flow.path[hop]].full_packet_ps + ports[flow.path[hop]].spec.latency_ps;
    return facts;
  }
  /// The flow has its size and path.
  template <class Flow, class Ports>
  void begin_sender(Flow& flow, const Ports& ports, Time now) const {
    if (flow.managed) flow.sender.start(parameters_, facts_of(flow, ports), now);
    flow.counts_acks = window_of(flow) != kNoWindow || (P::kWants.acks && flow.managed);
  }

  template <class Flow>
  std::int64_t window_of(const Flow& flow) const {
    return flow.managed ? flow.sender.window_bytes() : transport_.window_bytes;
  }
  template <class Flow>
  bool fits(const Flow& flow) const {
    return flow.unacked == 0 || (flow.unacked + std::int64_t{1}) * packet_bytes_ <= window_of(flow);
  }
  /// Whether acks on their way can change anything.
  template <class Flow>
  bool acks_matter(const Flow& flow) const {
    if (!flow.counts_acks || flow.left == 0) return false;
    if (P::kWants.acks && flow.managed) return true;
    return (flow.unacked + static_cast<std::int64_t>(flow.left)) * packet_bytes_ > window_of(flow);
  }

  Transport transport_;
  typename P::Parameters parameters_;
  std::int64_t packet_bytes_;  // of a full one, headers included
  bool marks_;
};

}  // namespace manyworlds::core::network
