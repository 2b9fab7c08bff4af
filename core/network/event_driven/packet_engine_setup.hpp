// Of the packet engine: how links and flows come into it.
#pragma once

#include <algorithm>

#include "core/network/event_driven/packet_engine.hpp"

namespace manyworlds::core::network {

template <Protocol P>
PacketEngine<P>::PacketEngine(const Transport& transport, const typename P::Parameters& parameters, bool marks)
    : Pinned(transport, parameters, marks) {}

template <Protocol P>
void PacketEngine<P>::reset() {
  now_ = quiet_since_ = inline_before_ = 0;
  events_.clear();
  put_aside(ports_, spare_ports_);
  put_aside(flows_, spare_flows_);
  free_.clear();
  live_ = pending_control_ = 0;
  watched_ = kNoFlow;
  counters_ = {};
}

template <Protocol P>
std::uint32_t PacketEngine<P>::add_link(const LinkSpec& spec) {
  const std::uint32_t slot = add_slot(ports_, spare_ports_);
  Port& port = ports_[slot];
  port.queue.clear();
  port.wire.clear();
  port.onward.clear();
  static_cast<PortState&>(port) = PortState{};
  this->take_figures(port, spec);
  port.slack_ps = spec.latency_ps;
  return slot;
}

template <Protocol P>
std::uint32_t PacketEngine<P>::start(const Route& route, std::int64_t bytes, std::uint64_t order) {
  const std::uint32_t slot = take_slot();
  Flow& flow = flows_[slot];
  set_up(flow, route, order);
  this->take_size(flow, bytes);
  ++ports_[flow.path[0]].senders;
  start_sender(flow);
  flow.next_packet_at = now_;
  flow.last_notice = now_ - kCnpInterval;
  if (flow.managed) arm(flow, slot);
  offer(slot);
  return slot;
}

template <Protocol P>
void PacketEngine<P>::set_up(Flow& flow, const Route& route, std::uint64_t order) {
  static_cast<FlowState&>(flow) = FlowState{};
  flow.acks.clear();
  flow.departures.clear();
  flow.order = order;
  flow.live = true;
  flow.life = (flow.life + 1) & 0x0FFF'FFFF;
  this->take_path(flow, route, ports_);
  for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
    ports_[route[hop]].forwards = true;
    goes_on(route[hop - 1], route[hop]);
  }
  Port& nic = ports_[route[0]];
  nic.slack_ps = 0;  // departures from it are events
  if (nic.service_at != kNever) service(route[0]);
  ++live_;
}

/// Packets that come over `link` go on over `onward`.
template <Protocol P>
void PacketEngine<P>::goes_on(std::uint32_t link, std::uint32_t onward) {
  Port& port = ports_[link];
  if (std::find(port.onward.begin(), port.onward.end(), onward) != port.onward.end()) return;
  port.onward.push_back(onward);
  if (port.pause_wanted) ++ports_[onward].pressed;
}

template <Protocol P>
void PacketEngine<P>::start_sender(Flow& flow) {
  this->begin_sender(flow, ports_, now_);
  if constexpr (P::kWants.telemetry) {
    const std::int64_t in_flight = std::min<std::int64_t>(flow.left, window_of(flow) / packet_bytes_ + 1);
    flow.telemetry.clear(flow.hops - 1, static_cast<std::uint32_t>(in_flight));
  }
}

}  // namespace manyworlds::core::network
