// Packet engine: construction, reset, and adding links and flows.
#pragma once

#include <algorithm>

#include "core/base/error.hpp"
#include "core/network/engine/ecn_marking.hpp"
#include "core/network/event_driven/packet_engine.hpp"

namespace manyworlds::core::network {

template <SenderProtocol P>
PacketEngine<P>::PacketEngine(const Transport& transport, const typename P::Parameters& parameters, bool ecn_enabled)
    : transport_(transport),
      parameters_(parameters),
      packet_bytes_(transport.payload_bytes + transport.header_bytes),
      ecn_enabled_(ecn_enabled) {}

template <SenderProtocol P>
void PacketEngine<P>::reset() {
  now_ = last_activity_ = inline_before_ = 0;
  events_.clear();
  recycle_all(ports_, spare_ports_);
  recycle_all(flows_, spare_flows_);
  free_.clear();
  live_ = pending_pfc_ = 0;
  watched_ = kNoFlow;
  counters_ = {};
}

template <SenderProtocol P>
std::uint32_t PacketEngine<P>::add_link(const LinkSpec& spec) {
  const std::uint32_t slot = append_slot(ports_, spare_ports_);
  Port& port = ports_[slot];
  port.queue.clear();
  port.wire.clear();
  port.downstream.clear();
  static_cast<LinkFields&>(port) = {};
  static_cast<PortFields&>(port) = {};
  port.spec = spec;
  port.full_packet_ps = serialization_ps(packet_bytes_, spec.bits_per_second);
  port.control_ps = spec.latency_ps + serialization_ps(transport_.ack_bytes, spec.bits_per_second);
  port.kmin = scaled_to_rate(transport_.ecn_kmin_bytes, spec.bits_per_second);
  port.kmax = scaled_to_rate(transport_.ecn_kmax_bytes, spec.bits_per_second);
  port.slack_ps = spec.latency_ps;
  return slot;
}

template <SenderProtocol P>
std::uint32_t PacketEngine<P>::start(const Route& route, std::int64_t bytes, std::uint64_t tie_order) {
  const std::uint32_t slot = acquire_slot();
  Flow& flow = flows_[slot];
  set_up(flow, route, tie_order);
  set_size(flow, bytes);
  ++ports_[flow.path[0]].senders;
  start_sender(flow);
  flow.next_packet_at = now_;
  flow.last_cnp = now_ - kCnpInterval;
  if (flow.uses_cc) arm_timer(flow, slot);
  offer(slot);
  return slot;
}

template <SenderProtocol P>
void PacketEngine<P>::set_up(Flow& flow, const Route& route, std::uint64_t tie_order) {
  static_cast<FlowFields<P>&>(flow) = {};
  static_cast<FlowIndex&>(flow) = {};
  flow.acks.clear();
  flow.departures.clear();
  flow.tie_order = tie_order;
  flow.live = true;
  flow.generation = (flow.generation + 1) & 0x0FFF'FFFF;
  MANYWORLDS_CHECK(route.size() <= kMaxHops, "a path of {} links", route.size());
  flow.hops = static_cast<std::uint32_t>(route.size());
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
    const Port& port = ports_[flow.path[hop] = route[hop]];
    flow.ack_ps += port.control_ps;
    flow.uses_cc |= !port.spec.scale_up;
  }
  for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
    ports_[route[hop]].forwards = true;
    add_downstream(route[hop - 1], route[hop]);
  }
  Port& nic = ports_[route[0]];
  nic.slack_ps = 0;  // every departure from a NIC is an event
  if (nic.service_at != kNever) service(route[0]);
  ++live_;
}

template <SenderProtocol P>
void PacketEngine<P>::set_size(Flow& flow, std::int64_t bytes) const {
  const std::int64_t packets = packets_of(transport_, bytes);
  MANYWORLDS_CHECK(packets < (1ll << 32), "{} packets", packets);
  flow.remaining = static_cast<std::uint32_t>(packets);
  flow.last_bytes = bytes - (packets - 1) * transport_.payload_bytes + transport_.header_bytes;
}

/// Records that packets which arrive over `link` continue over `downstream`.
template <SenderProtocol P>
void PacketEngine<P>::add_downstream(std::uint32_t link, std::uint32_t downstream) {
  Port& port = ports_[link];
  if (std::find(port.downstream.begin(), port.downstream.end(), downstream) != port.downstream.end()) return;
  port.downstream.push_back(downstream);
  if (port.pause_wanted) ++ports_[downstream].over_xoff;
}

template <SenderProtocol P>
PathInfo PacketEngine<P>::path_info(const Flow& flow) const {
  PathInfo info;
  info.line_bits_per_second = ports_[flow.path[0]].spec.bits_per_second;
  info.packet_bytes = packet_bytes_;
  info.hops = flow.hops;
  info.base_rtt_ps = flow.ack_ps;
  for (const std::uint32_t link : flow.links())
    info.base_rtt_ps += ports_[link].full_packet_ps + ports_[link].spec.latency_ps;
  return info;
}

/// Initializes the sender of a flow whose size and path are set.
template <SenderProtocol P>
void PacketEngine<P>::start_sender(Flow& flow) {
  if (flow.uses_cc) flow.sender.start(parameters_, path_info(flow), now_);
  flow.counts_acks = window_of(flow) != kNoWindow || (P::kNeeds.acks && flow.uses_cc);
  if constexpr (P::kNeeds.telemetry) {
    const std::int64_t in_flight = std::min<std::int64_t>(flow.remaining, window_of(flow) / packet_bytes_ + 1);
    flow.telemetry.clear(flow.hops - 1, static_cast<std::uint32_t>(in_flight));
  }
}

}  // namespace manyworlds::core::network
