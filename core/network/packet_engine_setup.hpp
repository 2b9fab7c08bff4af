// Of the packet engine: how links and flows come into it.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "core/network/packet_engine.hpp"

namespace manyworlds::core::network {

/// ECN thresholds are given at 100 Gb/s.
constexpr std::int64_t at_rate(std::int64_t bytes, std::int64_t bits_per_second) {
  return static_cast<std::int64_t>(static_cast<Wide>(bytes) * bits_per_second / 100'000'000'000);
}

template <Protocol P>
PacketEngine<P>::PacketEngine(const Transport& transport, const typename P::Parameters& parameters, bool marks)
    : transport_(transport),
      parameters_(parameters),
      packet_bytes_(transport.payload_bytes + transport.header_bytes),
      marks_(marks) {}

template <Protocol P>
void PacketEngine<P>::reset() {
  now_ = quiet_since_ = inline_before_ = 0;
  events_.clear();
  std::move(ports_.begin(), ports_.end(), std::back_inserter(spare_ports_));
  std::move(flows_.begin(), flows_.end(), std::back_inserter(spare_flows_));
  ports_.clear();
  flows_.clear();
  free_.clear();
  live_ = pending_control_ = 0;
  watched_ = kNoFlow;
  counters_ = {};
}

template <Protocol P>
std::uint32_t PacketEngine<P>::add_link(const LinkSpec& spec) {
  if (spare_ports_.empty()) {
    ports_.emplace_back();
  } else {
    ports_.push_back(std::move(spare_ports_.back()));
    spare_ports_.pop_back();
  }
  Port& port = ports_.back();
  port.queue.clear();
  port.wire.clear();
  port.onward.clear();
  static_cast<PortState&>(port) = PortState{};
  port.spec = spec;
  port.full_packet_ps = serialization_ps(packet_bytes_, spec.bits_per_second);
  port.control_ps = spec.latency_ps + serialization_ps(transport_.ack_bytes, spec.bits_per_second);
  port.slack_ps = spec.latency_ps;
  port.kmin = at_rate(transport_.ecn_kmin_bytes, spec.bits_per_second);
  port.kmax = at_rate(transport_.ecn_kmax_bytes, spec.bits_per_second);
  return static_cast<std::uint32_t>(ports_.size() - 1);
}

template <Protocol P>
std::uint32_t PacketEngine<P>::start(const Route& route, std::int64_t bytes, std::uint64_t order) {
  const std::int64_t packets =
      std::max<std::int64_t>(1, (bytes + transport_.payload_bytes - 1) / transport_.payload_bytes);
  MANYWORLDS_CHECK(packets < (1ll << 32) && route.size() <= kMaxHops, "{} packets over {} links", packets,
                   route.size());
  const std::uint32_t slot = take_slot();
  Flow& flow = flows_[slot];
  set_up(flow, route, order);
  flow.left = static_cast<std::uint32_t>(packets);
  flow.last_bytes = bytes - (packets - 1) * transport_.payload_bytes + transport_.header_bytes;
  ++ports_[flow.path[0]].senders;
  start_sender(flow);
  flow.next_packet_at = now_;
  flow.last_notice = now_ - kCnpInterval;
  if (flow.managed) arm(flow, slot);
  offer(slot);
  return slot;
}

template <Protocol P>
std::uint32_t PacketEngine<P>::take_slot() {
  if (!free_.empty()) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  if (spare_flows_.empty()) {
    flows_.emplace_back();
  } else {
    flows_.push_back(std::move(spare_flows_.back()));
    spare_flows_.pop_back();
  }
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

template <Protocol P>
void PacketEngine<P>::set_up(Flow& flow, const Route& route, std::uint64_t order) {
  static_cast<FlowState&>(flow) = FlowState{};
  flow.acks.clear();
  flow.departures.clear();
  flow.order = order;
  flow.live = true;
  flow.life = (flow.life + 1) & 0x0FFF'FFFF;
  flow.hops = static_cast<std::uint32_t>(route.size());
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
    Port& port = ports_[flow.path[hop] = route[hop]];
    port.forwards |= hop > 0;
    flow.ack_ps += port.control_ps;
    flow.managed |= !port.spec.scale_up;
    if (hop > 0) goes_on(route[hop - 1], route[hop]);
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
  if (flow.managed) flow.sender.start(parameters_, facts_of(flow), now_);
  flow.counts_acks = window_of(flow) != kNoWindow || (P::kWants.acks && flow.managed);
  if constexpr (P::kWants.telemetry) {
    const std::int64_t in_flight = std::min<std::int64_t>(flow.left, window_of(flow) / packet_bytes_ + 1);
    flow.telemetry.clear(flow.hops - 1, static_cast<std::uint32_t>(in_flight));
  }
}

template <Protocol P>
PathFacts PacketEngine<P>::facts_of(const Flow& flow) const {
  PathFacts facts;
  facts.line_bits_per_second = ports_[flow.path[0]].spec.bits_per_second;
  facts.packet_bytes = packet_bytes_;
  facts.hops = flow.hops;
  facts.base_rtt_ps = flow.ack_ps;
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop)
    facts.base_rtt_ps += ports_[flow.path[hop]].full_packet_ps + ports_[flow.path[hop]].spec.latency_ps;
  return facts;
}

}  // namespace manyworlds::core::network
