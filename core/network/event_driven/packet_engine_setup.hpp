// Packet engine: construction, reset, and adding links and flows.
#pragma once

#include <algorithm>

#include "core/network/event_driven/packet_engine.hpp"

namespace manyworlds::core::network {

template <SenderProtocol P>
PacketEngine<P>::PacketEngine(const Transport& transport, const typename P::Parameters& parameters, bool ecn_enabled)
    : Pinned(transport, parameters, ecn_enabled) {}

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
  static_cast<PortState&>(port) = PortState{};
  this->set_link_parameters(port, spec);
  port.slack_ps = spec.latency_ps;
  return slot;
}

template <SenderProtocol P>
std::uint32_t PacketEngine<P>::start(const Route& route, std::int64_t bytes, std::uint64_t tie_order) {
  const std::uint32_t slot = acquire_slot();
  Flow& flow = flows_[slot];
  set_up(flow, route, tie_order);
  this->set_size(flow, bytes);
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
  static_cast<FlowState&>(flow) = FlowState{};
  flow.acks.clear();
  flow.departures.clear();
  flow.tie_order = tie_order;
  flow.live = true;
  flow.generation = (flow.generation + 1) & 0x0FFF'FFFF;
  this->set_path(flow, route, ports_);
  for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
    ports_[route[hop]].forwards = true;
    add_downstream(route[hop - 1], route[hop]);
  }
  Port& nic = ports_[route[0]];
  nic.slack_ps = 0;  // every departure from a NIC is an event
  if (nic.service_at != kNever) service(route[0]);
  ++live_;
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
void PacketEngine<P>::start_sender(Flow& flow) {
  this->init_sender(flow, ports_, now_);
  if constexpr (P::kNeeds.telemetry) {
    const std::int64_t in_flight = std::min<std::int64_t>(flow.remaining, window_of(flow) / packet_bytes_ + 1);
    flow.telemetry.clear(flow.hops - 1, static_cast<std::uint32_t>(in_flight));
  }
}

}  // namespace manyworlds::core::network
