// The member functions of CongestionControlled<P>.
#pragma once

#include "core/base/hash.hpp"
#include "core/network/per_packet/congestion_controlled.hpp"

namespace manyworlds::core::network::per_packet {

// ---- Routes and transfers ----

template <SenderProtocol P>
std::uint32_t CongestionControlled<P>::add_route(std::uint32_t source, std::uint32_t destination) {
  Route route;
  route.source = source;
  route.destination = destination;
  route.there = forwarding_->first_hop_links(source, destination);
  for (const std::uint32_t link : route.there) network_.add_source_link(link);
  route.back = forwarding_->first_hop_links(destination, source);
  for (std::uint32_t link = route.there.front();;
       link = forwarding_->next_hops(network_.link(link).to, destination).front()) {
    add_path_facts(route, link);  // the first shortest path represents all of them
    if (network_.link(link).to == destination) break;
  }
  routes_.push_back(std::move(route));
  return static_cast<std::uint32_t>(routes_.size() - 1);
}

template <SenderProtocol P>
std::uint32_t CongestionControlled<P>::add_route(const network::Route& there, const network::Route& back) {
  if (network_.options().steering != Steering::pinned)
    return add_route(network_.link(there.front()).from, network_.link(there.back()).to);
  Route route;
  route.source = network_.link(there.front()).from;
  route.destination = network_.link(there.back()).to;
  route.there = {there.front()};
  route.back = {back.front()};
  route.pinned_there = network_.register_pinned_path(there);
  route.pinned_back = network_.register_pinned_path(back);
  for (const std::uint32_t link : there) add_path_facts(route, link);
  routes_.push_back(std::move(route));
  return static_cast<std::uint32_t>(routes_.size() - 1);
}

/// Adds one link to the path facts of the sender. Acknowledgements modelled as delay return over the same links.
template <SenderProtocol P>
void CongestionControlled<P>::add_path_facts(Route& route, std::uint32_t link) {
  const Link& at = network_.link(link);
  if (route.facts.hops == 0) route.facts.line_bits_per_second = at.bits_per_second;
  route.facts.packet_bytes = packet_bytes();
  ++route.facts.hops;
  if constexpr (P::kNeeds.telemetry) network_.enable_telemetry(route.facts.hops - 1);
  route.uses_cc |= at.kind == LinkKind::network;
  route.ack_ps += network_.control_ps(link);
  route.facts.base_rtt_ps += network_.control_ps(link) + network_.full_packet_ps(link) + at.latency_ps;
}

template <SenderProtocol P>
std::uint32_t CongestionControlled<P>::start(std::uint32_t route, std::int64_t bytes, std::uint64_t tie_order,
                                             std::uint64_t entropy) {
  const std::int64_t payload = options_.payload_bytes;
  const std::int64_t packets = std::max<std::int64_t>(1, (bytes + payload - 1) / payload);
  MANYWORLDS_CHECK(packets < (1ll << 32) && tie_order <= kOrderMask, "{} packets, order {}", packets, tie_order);
  auto slot = static_cast<std::uint32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
    flows_[slot] = Flow{};
    if (!gone_.empty()) gone_.erase(slot);
  }
  network_.set_tie_order(slot, tie_order);
  Flow& flow = flows_[slot];
  flow.tie_order = tie_order;
  flow.hash = splitmix64(splitmix64(options_.seed) ^ entropy);
  flow.route = route;
  flow.packets = static_cast<std::uint32_t>(packets);
  flow.last_bytes = static_cast<std::uint32_t>(bytes - (packets - 1) * payload + packet_bytes() - payload);
  flow.live = true;
  flow.next_packet_at = flow.last_departure_at = flow.last_heard_at = now();
  flow.last_cnp = now() - kCnpInterval;
  flow.timeout = timeout_of(flow);
  ++live_;
  if (routes_[route].uses_cc) {
    flow.sender.start(parameters_, routes_[route].facts, now());
    arm_timer(flow, slot, flow.sender.deadline());
  }
  if (lossy()) arm_timer(flow, slot, now() + flow.timeout);
  offer(slot);
  return slot;
}

template <SenderProtocol P>
void CongestionControlled<P>::run(Time limit, std::vector<std::uint32_t>& completed) {
  completed_ = &completed;
  network_.run(*this, limit);
  completed_ = nullptr;
  if (drained()) {
    network_.discard_pending();
    flows_.clear();
    free_.clear();
    gone_.clear();
    return;
  }
  const bool waits_for_routes = expects_failures_ && limit != kNever;
  if (live_ > 0 && network_.no_event_pending() && !waits_for_routes) network_.explain_deadlock();
}

// ---- Sender ----

/// Offers the next packet to the NIC if window and pacing allow; lost packets first.
template <SenderProtocol P>
void CongestionControlled<P>::offer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.at_nic || flow.blocked || sent_all(flow)) return;
  const Route& route = routes_[flow.route];
  if (!fits_window(flow)) {
    flow.blocked = true;
    return;
  }
  if (flow.next_packet_at > now()) {
    if (flow.pace_at == flow.next_packet_at) return;
    flow.pace_at = flow.next_packet_at;
    ++flow.pending;
    return network_.schedule_pace(flow.next_packet_at, flow.tie_order, slot);
  }
  std::uint32_t number = flow.next;
  if (flow.lost.count() > 0) {
    flow.lost.clear(number = flow.lost.lowest());
    ++network_.counters().retransmissions;
  } else {
    ++flow.next;
  }
  const std::uint32_t index = network_.allocate(slot);
  Packet& packet = network_.packets()[index];
  packet.number = number;
  packet.value = 0;
  packet.kind = PacketKind::data;
  packet.bytes = number + 1 == flow.packets ? flow.last_bytes : static_cast<std::uint32_t>(packet_bytes());
  packet.hop = 0;
  packet.destination = route.destination;
  choose_path(flow, packet);
  if (route.uses_cc)
    if (const Time gap = flow.sender.gap(packet.bytes); gap > 0) flow.next_packet_at = now() + gap;
  flow.at_nic = true;
  ++flow.unacked;
  if (may_lose_) flow.outstanding.set(number);
  network_.offer(index);
}

/// Chooses the path of a packet and its link out of the NIC.
template <SenderProtocol P>
void CongestionControlled<P>::choose_path(Flow& flow, Packet& packet) {
  const Route& route = routes_[flow.route];
  if (network_.options().steering == Steering::pinned) {
    packet.path = route.pinned_there;
    packet.link = route.there.front();
    return;
  }
  if (options_.path_granularity == PathGranularity::per_flowlet &&
      now() - flow.last_departure_at >= options_.flowlet_gap)
    ++flow.flowlet;
  const std::uint64_t path_selector = options_.path_granularity == PathGranularity::per_packet ? packet.number + 1
                                      : options_.path_granularity == PathGranularity::per_flow ? 0
                                                                                               : flow.flowlet;
  packet.path = static_cast<std::uint32_t>(splitmix64(flow.hash ^ path_selector));
  packet.link = route.there[packet.path % route.there.size()];
}

template <SenderProtocol P>
void CongestionControlled<P>::departed(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.at_nic = false;
  flow.last_departure_at = now();
  if (!flow.live) return free_if_finished(slot);
  if (sent_all(flow)) return;
  if (routes_[flow.route].uses_cc) {
    flow.sender.sent(parameters_, packet_bytes(), now());
    arm_timer(flow, slot, flow.sender.deadline());
  }
  offer(slot);
}

/// Processes an acknowledgement at the sender, which arrived as a packet or after a delay (the record of the data
/// packet).
template <SenderProtocol P>
void CongestionControlled<P>::acknowledge(std::uint32_t index) {
  const Packet packet = network_.packets()[index];
  const std::uint32_t slot = packet.flow;
  Flow& flow = flows_[slot];
  if (++flow.acks_received == flow.packets && records_acknowledgements_ && !may_lose_)
    acknowledgements_.emplace_back(flow.tie_order, now());
  if (flow.live) {
    flow.last_heard_at = now();
    if (may_lose_)
      process_ack(flow, slot, packet.number);
    else
      --flow.unacked;
    if (P::kNeeds.acks && routes_[flow.route].uses_cc && !sent_all(flow)) {
      Feedback feedback{now(), now() - packet.sent_at, packet_bytes(), flow.unacked, packet.value != 0, nullptr};
      if constexpr (P::kNeeds.telemetry) feedback.telemetry = network_.telemetry(index);
      flow.sender.acknowledged(parameters_, feedback);
      arm_timer(flow, slot, flow.sender.deadline());
    }
  }
  network_.release(index);
  if (!flow.live) return free_if_finished(slot);
  flow.blocked = false;
  offer(slot);
}

/// Where packets may be lost: updates the state of packet `number`, which was acknowledged, and declares the packets
/// lost that left `reordering_packets` or more packets before it and are still unacknowledged; on a lossless fabric,
/// those of them that are.
template <SenderProtocol P>
void CongestionControlled<P>::process_ack(Flow& flow, std::uint32_t slot, std::uint32_t number) {
  if (flow.outstanding.clear(number)) --flow.unacked;
  flow.lost.clear(number);
  if (number >= flow.acked.base()) flow.acked.set(number);
  flow.acked.skip_contiguous();
  flow.outstanding.move_to(flow.acked.base());
  flow.lost.move_to(flow.acked.base());
  flow.timeout = timeout_of(flow);
  if (!lossy()) {
    if (retransmit_ == 0 || number < options_.reordering_packets) return;
    flow.loss_checked_below = std::max(flow.loss_checked_below, number - options_.reordering_packets + 1);
    if (const auto gone = gone_.find(slot); gone != gone_.end() && gone->second.count() > 0) send_lost_again(slot);
    return;
  }
  for (; flow.loss_checked_below + options_.reordering_packets <= number; ++flow.loss_checked_below)
    if (flow.outstanding.test(flow.loss_checked_below)) declare_lost(flow, flow.loss_checked_below);
}

/// Marks a packet as lost, and reports the loss to the protocol at most once per round trip.
template <SenderProtocol P>
void CongestionControlled<P>::declare_lost(Flow& flow, std::uint32_t number) {
  flow.outstanding.clear(number);
  flow.lost.set(number);
  --flow.unacked;
  if (!routes_[flow.route].uses_cc || flow.losses_reported_until > now()) return;
  flow.losses_reported_until = now() + routes_[flow.route].facts.base_rtt_ps;
  flow.sender.lost(parameters_, now());
}

/// Schedules a timer event at `at` unless an earlier one is pending. Timers are never cancelled; one that finds no
/// deadline reached does nothing.
template <SenderProtocol P>
void CongestionControlled<P>::arm_timer(Flow& flow, std::uint32_t slot, Time at) {
  if (at >= flow.timer_at) return;
  flow.timer_at = at;
  ++flow.pending;
  network_.schedule(at, EventKind::timer, flow.tie_order, slot);
}

template <SenderProtocol P>
void CongestionControlled<P>::timer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  --flow.pending;
  if (!flow.live) return free_if_finished(slot);
  if (flow.timer_at <= now()) flow.timer_at = kNever;
  const bool uses_cc = routes_[flow.route].uses_cc;
  if (uses_cc && !sent_all(flow) && flow.sender.deadline() <= now()) flow.sender.expire(parameters_, now());
  if (lossy()) {
    if (flow.last_heard_at + flow.timeout <= now()) {
      while (flow.outstanding.count() > 0) declare_lost(flow, flow.outstanding.lowest());
      flow.last_heard_at = now();
      flow.timeout = std::min(2 * flow.timeout, 64 * timeout_of(flow));
      flow.blocked = false;
      offer(slot);
    }
    arm_timer(flow, slot, flow.last_heard_at + flow.timeout);
  } else if (!gone_.empty() && gone_.count(slot) > 0) {
    send_lost_again(slot);
  }
  if (uses_cc && !sent_all(flow)) arm_timer(flow, slot, flow.sender.deadline());
}

template <SenderProtocol P>
void CongestionControlled<P>::pace(std::uint32_t slot) {
  --flows_[slot].pending;
  if (!flows_[slot].live) return free_if_finished(slot);
  offer(slot);
}

template <SenderProtocol P>
void CongestionControlled<P>::cnp(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  --flow.pending;
  if (!flow.live) return free_if_finished(slot);
  if (sent_all(flow)) return;
  flow.sender.notified(parameters_, now());
  arm_timer(flow, slot, flow.sender.deadline());
}

/// Frees the slot when its transfer is complete and no packet or event of it is left.
template <SenderProtocol P>
void CongestionControlled<P>::free_if_finished(std::uint32_t slot) {
  const Flow& flow = flows_[slot];
  if (!flow.live && flow.pending == 0 && !flow.at_nic && network_.live_packets(slot) == 0) free_.push_back(slot);
}

// ---- Links that fail ----

/// A packet of the transfer, or its acknowledgement, is lost.
template <SenderProtocol P>
void CongestionControlled<P>::lost(std::uint32_t index) {
  const Packet packet = network_.packets()[index];
  const std::uint32_t slot = packet.flow;
  Flow& flow = flows_[slot];
  if (packet.kind == PacketKind::data && packet.hop == 0) flow.at_nic = false;
  network_.release(index);
  if (!flow.live) return free_if_finished(slot);
  if (lossy() || !flow.outstanding.test(packet.number)) return;  // the sender finds out, or need not know
  BitWindow& gone = gone_[slot];
  gone.move_to(flow.outstanding.base());
  gone.set(packet.number);
  send_lost_again(slot);
}

/// On a lossless fabric: declares packets that failed links have lost as lost if the sender knows by now, and sends
/// them again; otherwise arms the timer for those that it will miss.
template <SenderProtocol P>
void CongestionControlled<P>::send_lost_again(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  BitWindow& gone = gone_[slot];
  gone.move_to(std::max(gone.base(), flow.outstanding.base()));
  const bool missed = retransmit_ == 0 ? avoids_failures_ : flow.last_heard_at + retransmit_ <= now();
  bool declared = false;
  while (gone.count() > 0 && (missed || gone.lowest() < flow.loss_checked_below)) {
    const std::uint32_t number = gone.lowest();
    gone.clear(number);
    if (!flow.outstanding.test(number)) continue;
    declare_lost(flow, number);
    declared = true;
  }
  if (missed && declared) flow.last_heard_at = now();
  if (gone.count() > 0 && retransmit_ > 0) arm_timer(flow, slot, flow.last_heard_at + retransmit_);
  if (!declared) return;
  flow.blocked = false;
  offer(slot);
}

template <SenderProtocol P>
void CongestionControlled<P>::reroute(std::shared_ptr<ForwardingTables> forwarding,
                                      const std::vector<std::pair<network::Route, network::Route>>& routes,
                                      bool avoid_all) {
  MANYWORLDS_CHECK(routes.size() == routes_.size(), "{} new routes for {}", routes.size(), routes_.size());
  forwarding_ = std::move(forwarding);
  network_.forward_by(forwarding_);
  avoids_failures_ = avoid_all;
  const std::vector<Route> old = std::exchange(routes_, {});
  for (const auto& [there, back] : routes) add_route(there, back);
  for (std::uint32_t slot = 0; slot < flows_.size(); ++slot) {
    Flow& flow = flows_[slot];
    if (!flow.live) continue;
    if constexpr (requires { flow.sender.path_changed(); }) flow.sender.path_changed();
    if (const Route& route = routes_[flow.route];
        route.uses_cc && !old[flow.route].uses_cc) {  // it leaves its node now
      flow.sender.start(parameters_, route.facts, now());
      arm_timer(flow, slot, flow.sender.deadline());
    }
    if (!lossy() && retransmit_ == 0 && gone_.count(slot) > 0) send_lost_again(slot);
    offer(slot);
  }
}

// ---- Receiver ----

template <SenderProtocol P>
void CongestionControlled<P>::deliver(std::uint32_t index) {
  const Packet arrival = network_.packets()[index];
  if (arrival.kind == PacketKind::ack) return acknowledge(index);
  const std::uint32_t slot = arrival.flow;
  Flow& flow = flows_[slot];
  const Route& route = routes_[flow.route];
  const bool marked = (arrival.hop & kMarked) != 0;
  if (flow.live) {
    const bool is_new = !may_lose_ || (arrival.number >= flow.arrived.base() && flow.arrived.set(arrival.number));
    if (may_lose_) flow.arrived.skip_contiguous();
    if (is_new && ++flow.received == flow.packets) {
      flow.live = false;
      --live_;
      completed_->push_back(slot);
    }
  }
  if (P::kNeeds.cnps && marked && flow.live && !sent_all(flow) && now() - flow.last_cnp >= kCnpInterval) {
    flow.last_cnp = now();
    ++flow.pending;
    network_.schedule(now() + route.ack_ps, EventKind::cnp, flow.tie_order, slot);
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
    free_if_finished(slot);
  }
}

}  // namespace manyworlds::core::network::per_packet
