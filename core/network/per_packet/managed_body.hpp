// The bodies of Managed<P>.
#pragma once

#include "core/base/hash.hpp"
#include "core/network/per_packet/managed.hpp"

namespace manyworlds::core::network::individual {

// ---- Routes and transfers ----

template <Protocol P>
std::uint32_t Managed<P>::add_route(std::uint32_t source, std::uint32_t destination) {
  Route route;
  route.source = source;
  route.destination = destination;
  route.there = forwarding_->first_links(source, destination);
  for (const std::uint32_t link : route.there) network_.send_from(link);
  route.back = forwarding_->first_links(destination, source);
  for (std::uint32_t link = route.there.front();;
       link = forwarding_->onward(network_.link(link).to, destination).front()) {
    describe(route, link);  // the first of the shortest paths stands for them
    if (network_.link(link).to == destination) break;
  }
  routes_.push_back(std::move(route));
  return static_cast<std::uint32_t>(routes_.size() - 1);
}

template <Protocol P>
std::uint32_t Managed<P>::add_route(const network::Route& there, const network::Route& back) {
  if (network_.options().steering != Steering::pinned)
    return add_route(network_.link(there.front()).from, network_.link(there.back()).to);
  Route route;
  route.source = network_.link(there.front()).from;
  route.destination = network_.link(there.back()).to;
  route.there = {there.front()};
  route.back = {back.front()};
  route.pinned_there = network_.pin(there);
  route.pinned_back = network_.pin(back);
  for (const std::uint32_t link : there) describe(route, link);
  routes_.push_back(std::move(route));
  return static_cast<std::uint32_t>(routes_.size() - 1);
}

/// What the sender knows of its path, link by link. An acknowledgement that is delay comes back over the same links.
template <Protocol P>
void Managed<P>::describe(Route& route, std::uint32_t link) {
  const Link& at = network_.link(link);
  if (route.facts.hops == 0) route.facts.line_bits_per_second = at.bits_per_second;
  route.facts.packet_bytes = packet_bytes();
  ++route.facts.hops;
  if constexpr (P::kWants.telemetry) network_.watch(route.facts.hops - 1);
  route.managed |= at.kind == LinkKind::network;
  route.ack_ps += network_.control_ps(link);
  route.facts.base_rtt_ps += network_.control_ps(link) + network_.full_packet_ps(link) + at.latency_ps;
}

template <Protocol P>
std::uint32_t Managed<P>::start(std::uint32_t route, std::int64_t bytes, std::uint64_t order, std::uint64_t entropy) {
  const std::int64_t payload = options_.payload_bytes;
  const std::int64_t packets = std::max<std::int64_t>(1, (bytes + payload - 1) / payload);
  MANYWORLDS_CHECK(packets < (1ll << 32) && order <= kOrderMask, "{} packets, order {}", packets, order);
  auto slot = static_cast<std::uint32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
    flows_[slot] = Flow{};
  }
  network_.set_order(slot, order);
  Flow& flow = flows_[slot];
  flow.order = order;
  flow.hash = splitmix64(splitmix64(options_.seed) ^ entropy);
  flow.route = route;
  flow.packets = static_cast<std::uint32_t>(packets);
  flow.last_bytes = static_cast<std::uint32_t>(bytes - (packets - 1) * payload + packet_bytes() - payload);
  flow.live = true;
  flow.next_packet_at = flow.left_at = flow.heard_at = now();
  flow.last_notice = now() - kCnpInterval;
  flow.timeout = timeout_of(flow);
  ++live_;
  if (routes_[route].managed) {
    flow.sender.start(parameters_, routes_[route].facts, now());
    arm(flow, slot, flow.sender.deadline());
  }
  if (lossy()) arm(flow, slot, now() + flow.timeout);
  offer(slot);
  return slot;
}

template <Protocol P>
void Managed<P>::run(Time limit, std::vector<std::uint32_t>& completed) {
  completed_ = &completed;
  network_.run(*this, limit);
  completed_ = nullptr;
  if (drained()) {
    network_.forget();
    flows_.clear();
    free_.clear();
    return;
  }
  if (live_ > 0 && network_.stuck()) network_.explain_standstill();
}

// ---- Sender ----

template <Protocol P>
void Managed<P>::offer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.at_nic || flow.blocked || sent_all(flow)) return;
  const Route& route = routes_[flow.route];
  if (!fits(flow)) {
    flow.blocked = true;
    return;
  }
  if (flow.next_packet_at > now()) {
    if (flow.pace_at == flow.next_packet_at) return;
    flow.pace_at = flow.next_packet_at;
    ++flow.pending;
    return network_.note_pace(flow.next_packet_at, flow.order, slot);
  }
  std::uint32_t number = flow.next;
  if (flow.lost.count() > 0) {
    flow.lost.clear(number = flow.lost.lowest());
    ++network_.counters().retransmissions;
  } else {
    ++flow.next;
  }
  const std::uint32_t index = network_.take(slot);
  Packet& packet = network_.packets()[index];
  packet.number = number;
  packet.value = 0;
  packet.kind = PacketKind::data;
  packet.bytes = number + 1 == flow.packets ? flow.last_bytes : static_cast<std::uint32_t>(packet_bytes());
  packet.hop = 0;
  packet.destination = route.destination;
  aim(flow, packet);
  if (route.managed)
    if (const Time gap = flow.sender.gap(packet.bytes); gap > 0) flow.next_packet_at = now() + gap;
  flow.at_nic = true;
  ++flow.unacked;
  if (lossy()) flow.flying.set(number);
  network_.offer(index);
}

template <Protocol P>
void Managed<P>::aim(Flow& flow, Packet& packet) {
  const Route& route = routes_[flow.route];
  if (network_.options().steering == Steering::pinned) {
    packet.path = route.pinned_there;
    packet.link = route.there.front();
    return;
  }
  if (options_.spread == Spread::per_flowlet && now() - flow.left_at >= options_.flowlet_gap) ++flow.flowlet;
  const std::uint64_t drawn = options_.spread == Spread::per_packet ? packet.number + 1
                              : options_.spread == Spread::per_flow ? 0
                                                                    : flow.flowlet;
  packet.path = static_cast<std::uint32_t>(splitmix64(flow.hash ^ drawn));
  packet.link = route.there[packet.path % route.there.size()];
}

template <Protocol P>
void Managed<P>::departed(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.at_nic = false;
  flow.left_at = now();
  if (!flow.live) return settle(slot);
  if (sent_all(flow)) return;
  if (routes_[flow.route].managed) {
    flow.sender.sent(parameters_, packet_bytes(), now());
    arm(flow, slot, flow.sender.deadline());
  }
  offer(slot);
}

/// An acknowledgement is back: as a packet, or as the record of one that is nothing but delay.
template <Protocol P>
void Managed<P>::acknowledge(std::uint32_t index) {
  const Packet packet = network_.packets()[index];
  const std::uint32_t slot = packet.flow;
  Flow& flow = flows_[slot];
  if (++flow.answered == flow.packets && keeps_acknowledgements_ && !lossy())
    acknowledgements_.emplace_back(flow.order, now());
  if (flow.live) {
    flow.heard_at = now();
    if (lossy())
      learn(flow, packet.number);
    else
      --flow.unacked;
    if (P::kWants.acks && routes_[flow.route].managed && !sent_all(flow)) {
      Feedback feedback{now(), now() - packet.sent_at, packet_bytes(), flow.unacked, packet.value != 0, nullptr};
      if constexpr (P::kWants.telemetry) feedback.telemetry = network_.telemetry(index);
      flow.sender.acknowledged(parameters_, feedback);
      arm(flow, slot, flow.sender.deadline());
    }
  }
  network_.release(index);
  if (!flow.live) return settle(slot);
  flow.blocked = false;
  offer(slot);
}

/// On a lossy fabric: what the acknowledgement of `number` says of it and of those before it.
template <Protocol P>
void Managed<P>::learn(Flow& flow, std::uint32_t number) {
  if (flow.flying.clear(number)) --flow.unacked;
  flow.lost.clear(number);
  if (number >= flow.acked.base()) flow.acked.set(number);
  flow.acked.pass();
  flow.flying.move_to(flow.acked.base());
  flow.lost.move_to(flow.acked.base());
  flow.timeout = timeout_of(flow);
  for (; flow.examined + options_.reordering <= number; ++flow.examined)
    if (flow.flying.test(flow.examined)) lose(flow, flow.examined);
}

template <Protocol P>
void Managed<P>::lose(Flow& flow, std::uint32_t number) {
  flow.flying.clear(number);
  flow.lost.set(number);
  --flow.unacked;
  if (!routes_[flow.route].managed || flow.told_until > now()) return;
  flow.told_until = now() + routes_[flow.route].facts.base_rtt_ps;  // once per round trip
  flow.sender.lost(parameters_, now());
}

/// Timers are never cancelled: one that finds nothing due at its time does nothing.
template <Protocol P>
void Managed<P>::arm(Flow& flow, std::uint32_t slot, Time at) {
  if (at >= flow.timer_at) return;
  flow.timer_at = at;
  ++flow.pending;
  network_.note(at, Kind::timer, flow.order, slot);
}

template <Protocol P>
void Managed<P>::timer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  --flow.pending;
  if (!flow.live) return settle(slot);
  if (flow.timer_at <= now()) flow.timer_at = kNever;
  const bool managed = routes_[flow.route].managed;
  if (managed && !sent_all(flow) && flow.sender.deadline() <= now()) flow.sender.expire(parameters_, now());
  if (lossy()) {
    if (flow.heard_at + flow.timeout <= now()) {
      while (flow.flying.count() > 0) lose(flow, flow.flying.lowest());
      flow.heard_at = now();
      flow.timeout = std::min(2 * flow.timeout, 64 * timeout_of(flow));
      flow.blocked = false;
      offer(slot);
    }
    arm(flow, slot, flow.heard_at + flow.timeout);
  }
  if (managed && !sent_all(flow)) arm(flow, slot, flow.sender.deadline());
}

template <Protocol P>
void Managed<P>::pace(std::uint32_t slot) {
  --flows_[slot].pending;
  if (!flows_[slot].live) return settle(slot);
  offer(slot);
}

template <Protocol P>
void Managed<P>::notice(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  --flow.pending;
  if (!flow.live) return settle(slot);
  if (sent_all(flow)) return;
  flow.sender.notified(parameters_, now());
  arm(flow, slot, flow.sender.deadline());
}

/// A slot is free again when its transfer is complete and nothing of it is under way.
template <Protocol P>
void Managed<P>::settle(std::uint32_t slot) {
  const Flow& flow = flows_[slot];
  if (!flow.live && flow.pending == 0 && !flow.at_nic && network_.in_air(slot) == 0) free_.push_back(slot);
}

// ---- Receiver ----

template <Protocol P>
void Managed<P>::deliver(std::uint32_t index) {
  const Packet seen = network_.packets()[index];
  if (seen.kind == PacketKind::ack) return acknowledge(index);
  const std::uint32_t slot = seen.flow;
  Flow& flow = flows_[slot];
  const Route& route = routes_[flow.route];
  const bool marked = (seen.hop & kMarked) != 0;
  if (flow.live) {
    const bool fresh = !lossy() || (seen.number >= flow.arrived.base() && flow.arrived.set(seen.number));
    if (lossy()) flow.arrived.pass();
    if (fresh && ++flow.received == flow.packets) {
      flow.live = false;
      --live_;
      completed_->push_back(slot);
    }
  }
  if (P::kWants.notices && marked && flow.live && !sent_all(flow) && now() - flow.last_notice >= kCnpInterval) {
    flow.last_notice = now();
    ++flow.pending;
    network_.note(now() + route.ack_ps, Kind::notice, flow.order, slot);
  }
  Packet& packet = network_.packets()[index];
  packet.value = marked;
  if (options_.acks_in_band) {
    packet.kind = PacketKind::ack;
    packet.bytes = static_cast<std::uint32_t>(network_.options().control_bytes);
    packet.hop = 0;
    packet.destination = route.source;
    if (network_.options().steering == Steering::pinned) packet.path = route.pinned_back;
    packet.link = route.back[packet.path % route.back.size()];
    network_.offer(index);
  } else if (flow.live) {
    network_.push_feedback(now() + route.ack_ps, index);
  } else {
    network_.release(index);
    settle(slot);
  }
}

}  // namespace manyworlds::core::network::individual
