// Implementation of packet_engine.hpp, to be included where the engine of a protocol is instantiated.
#pragma once

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/network/engine/ecn_marking.hpp"
#include "core/network/event_driven/packet_engine.hpp"
#include "core/network/event_driven/packet_engine_setup.hpp"
#include "core/network/event_driven/packet_engine_state.hpp"

namespace manyworlds::core::network {

template <SenderProtocol P>
void PacketEngine<P>::run(Time limit, std::vector<std::uint32_t>& completed) {
  completed_ = &completed;
  limit_ = inline_before_ = limit;
  run_events(completed);
  inline_before_ = 0;  // flows that start between runs are sorted with all others of that instant
  if (drained()) events_.clear();
}

template <SenderProtocol P>
void PacketEngine<P>::run_events(std::vector<std::uint32_t>& completed) {
  const std::size_t previous = completed.size();
  while (!events_.empty()) {
    const Event event = events_.top();
    const bool arrival = kind_of(event) == EventKind::arrive;
    if (completed.size() > previous) {
      inline_before_ = now_;  // stop after this instant, but before its arrivals
      if (event.at > now_ || arrival) return;
    } else if (event.at > limit_ || (event.at == limit_ && arrival)) {
      now_ = limit_;
      return;
    }
    events_.pop();
    now_ = event.at;
    handle(event);
  }
  if (completed.size() == previous && limit_ != kNever) now_ = limit_;
}

template <SenderProtocol P>
PauseDependencies PacketEngine<P>::deadlock() const {
  PauseDependencies waits;
  if (live_ == 0 || !events_.empty()) return waits;
  for (std::uint32_t link = 0; link < ports_.size(); ++link)
    for (std::size_t i = 0; i < ports_[link].queue.size(); ++i) {
      const Packet packet = ports_[link].queue[i];
      if (hop_of(packet) == 0) continue;
      const std::uint32_t from = flows_[flow_of(packet)].path[hop_of(packet) - 1];
      if (ports_[from].paused) waits.emplace_back(from, link);
    }
  MANYWORLDS_CHECK(!waits.empty(), "{} flows wait for nothing", live_);
  return waits;
}

template <SenderProtocol P>
void PacketEngine<P>::handle(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.subject());  // slot of a flow or a link
  switch (kind_of(event)) {
    case EventKind::arrive:
      arrive_all(event);
      break;
    case EventKind::service:
      if (ports_[index].service_at == now_) service(index);
      break;
    case EventKind::pause:
      paused(index);
      break;
    case EventKind::resume:
      resume(index);
      break;
    default:
      if (flows_[index].live && flows_[index].generation == event.subject() >> 32) handle_flow(kind_of(event), index);
      break;
  }
}

template <SenderProtocol P>
void PacketEngine<P>::handle_flow(EventKind kind, std::uint32_t slot) {
  Flow& flow = flows_[slot];
  last_activity_ = now_;
  switch (kind) {
    case EventKind::deliver:
      complete(slot);
      break;
    case EventKind::departed:
      departed(slot);
      break;
    case EventKind::ack:
      flow.blocked = false;
      offer(slot);
      break;
    case EventKind::cnp:
      if (flow.remaining == 0) break;
      flow.sender.notified(parameters_, now_);
      arm_timer(flow, slot);
      break;
    default:
      timer(slot);
      break;
  }
}

template <SenderProtocol P>
void PacketEngine<P>::complete(std::uint32_t slot) {
  flows_[slot].live = false;
  --live_;
  free_.push_back(slot);
  completed_->push_back(slot);
}

/// Returns the packet of an arrival: the first in flight on a link, or the one that a flow offers to its NIC.
template <SenderProtocol P>
[[gnu::always_inline]] inline Packet PacketEngine<P>::take_arrival(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.subject());
  if ((event.subject() & kOverLink) == 0) {
    flows_[index].offered = false;
    return make_packet(index, flows_[index].remaining + 1);
  }
  Fifo<InFlightPacket>& wire = ports_[index].wire;
  const Packet packet = wire.front().packet;
  wire.pop();
  if (!wire.empty()) schedule_arrival(index, wire.front());
  return packet;
}

/// Handles all arrivals of this instant. Their order matters only among packets that arrive at the same port.
template <SenderProtocol P>
void PacketEngine<P>::arrive_all(const Event& first) {
  last_activity_ = now_;
  const Packet packet = take_arrival(first);
  if (events_.nothing_at(now_)) return arrive(packet);
  batch_.clear();
  for (Packet next = packet;; next = take_arrival(events_.take())) {
    const auto number = static_cast<std::uint32_t>(batch_.size());
    const std::uint32_t at = flows_[flow_of(next)].path[hop_of(next)];
    Port& port = ports_[at];
    batch_.push_back({next, at, port.last_arrival_at == now_ ? port.last_arrival : kNoArrival});
    port.last_arrival_at = now_;
    port.last_arrival = number;
    if (events_.nothing_at(now_)) break;
  }
  for (std::uint32_t number = 0; number < batch_.size(); ++number) {
    Port& port = ports_[batch_[number].port];
    if (port.last_arrival == number && batch_[number].previous == kNoArrival)
      arrive(batch_[number].packet);
    else if (port.last_arrival != kNoArrival)
      arrive_ranked(std::exchange(port.last_arrival, kNoArrival));
  }
}

/// Handles several arrivals at one port: `last` and its predecessors.
template <SenderProtocol P>
void PacketEngine<P>::arrive_ranked(std::uint32_t last) {
  ranked_.clear();
  for (std::uint32_t number = last; number != kNoArrival; number = batch_[number].previous)
    ranked_.emplace_back(flows_[flow_of(batch_[number].packet)].tie_order, batch_[number].packet);
  std::sort(ranked_.begin(), ranked_.end());
  for (const auto& [tie_order, packet] : ranked_) arrive(packet);
}

template <SenderProtocol P>
void PacketEngine<P>::arrive(Packet packet) {
  Flow& flow = flows_[flow_of(packet)];
  const std::uint32_t index = flow.path[hop_of(packet)];
  Port& port = ports_[index];
  if (number_of(packet) == 1 && hop_of(packet) == 0) --port.senders;
  if (port.busy_until > now_ || port.paused) return enqueue(port, index, flow, packet);
  if (!port.queue.empty()) {
    serve(port, index, now_);
    if (port.busy_until > now_) return enqueue(port, index, flow, packet);
  }
  transmit(port, index, flow, packet, now_);
}

/// Queues a packet at a busy or paused port.
template <SenderProtocol P>
void PacketEngine<P>::enqueue(Port& port, std::uint32_t index, const Flow& flow, Packet packet) {
  const std::int64_t size = size_of(flow, packet);
  const std::uint32_t hop = hop_of(packet);
  if (hop > 0) {
    const std::uint32_t from = flow.path[hop - 1];
    Port& ingress = ports_[from];
    ingress.ingress_bytes += size;
    if (ingress.ingress_bytes > transport_.pfc_xoff_bytes) [[unlikely]]
      check_xoff(from, index);
    if (ecn_enabled_ && flow.uses_cc && !port.spec.leaves_gpu && mark(port)) packet |= kMarkBit;
  }
  port.queue.push(packet);
  port.waiting_bytes += size;
  if (port.service_at == kNever && !port.paused) schedule_service(port, index);
}

/// Pauses the link `from` if its ingress buffer really exceeds XOFF after all ports that drain it have caught up; the
/// last packet is just being queued at `to`. Until the resume, those ports are served without slack.
template <SenderProtocol P>
[[gnu::noinline]] void PacketEngine<P>::check_xoff(std::uint32_t from, std::uint32_t to) {
  Port& ingress = ports_[from];
  for (const std::uint32_t downstream : ingress.downstream)
    if (downstream != to && !ports_[downstream].paused) serve(ports_[downstream], downstream, now_);
  MANYWORLDS_CHECK(ingress.ingress_bytes <= transport_.buffer_bytes, "a lossless buffer holds {} of {} bytes",
                   ingress.ingress_bytes, transport_.buffer_bytes);
  if (ingress.ingress_bytes <= transport_.pfc_xoff_bytes || ingress.pause_wanted) return;
  ingress.pause_wanted = true;
  ++counters_.pauses;
  pending_pfc_ += 2;
  push(now_ + ingress.control_ps, EventKind::pause, from);
  for (const std::uint32_t downstream : ingress.downstream) {
    ++ports_[downstream].over_xoff;
    if (ports_[downstream].service_at != kNever) schedule_service(ports_[downstream], downstream);
  }
}

template <SenderProtocol P>
bool PacketEngine<P>::mark(Port& port) {
  const bool marked = mark_next_packet(port, port.waiting_bytes, transport_.ecn_pmax_ppm);
  counters_.ecn_marks += marked;
  return marked;
}

/// Sends the queued packets whose transmission begins at `until` or before. The link is not paused.
template <SenderProtocol P>
[[gnu::noinline]] void PacketEngine<P>::serve(Port& port, std::uint32_t index, Time until) {
  while (port.busy_until <= until && !port.queue.empty()) {
    const Packet packet = port.queue.front();
    port.queue.pop();
    Flow& flow = flows_[flow_of(packet)];
    const std::int64_t size = size_of(flow, packet);
    const Time begin = port.busy_until;
    port.waiting_bytes -= size;
    if (const std::uint32_t hop = hop_of(packet); hop > 0) {
      const std::uint32_t from = flow.path[hop - 1];
      Port& ingress = ports_[from];
      ingress.ingress_bytes -= size;
      if (ingress.pause_wanted && ingress.ingress_bytes <= transport_.pfc_xon_bytes) {
        ingress.pause_wanted = false;
        for (const std::uint32_t downstream : ingress.downstream) --ports_[downstream].over_xoff;
        push(begin + ingress.control_ps, EventKind::resume, from);
      }
    }
    transmit(port, index, flow, packet, begin);
    if (port.queue.empty()) port.mark_error = 0;  // an idle port has no marking history
  }
}

template <SenderProtocol P>
void PacketEngine<P>::service(std::uint32_t index) {
  Port& port = ports_[index];
  port.service_at = kNever;
  serve(port, index, now_);
  if (!port.queue.empty()) schedule_service(port, index);
}

template <SenderProtocol P>
void PacketEngine<P>::paused(std::uint32_t index) {
  last_activity_ = now_;
  Port& port = ports_[index];
  serve(port, index, now_ - 1);  // at one instant a pause precedes services
  port.paused = true;
  port.service_at = kNever;
}

template <SenderProtocol P>
void PacketEngine<P>::resume(std::uint32_t index) {
  last_activity_ = now_;
  Port& port = ports_[index];
  port.paused = false;
  pending_pfc_ -= 2;  // the pause and this resume
  if (port.queue.empty()) return;
  port.busy_until = std::max(now_, port.busy_until);
  schedule_service(port, index);
}

template <SenderProtocol P>
[[gnu::always_inline]] inline void PacketEngine<P>::transmit(Port& port, std::uint32_t index, Flow& flow, Packet packet,
                                                             Time begin) {
  const std::int64_t size = size_of(flow, packet);
  const std::uint32_t hop = hop_of(packet);
  port.busy_until =
      begin + (size == packet_bytes_ ? port.full_packet_ps : serialization_ps(size, port.spec.bits_per_second));
  ++counters_.link_hops;
  if constexpr (P::kNeeds.telemetry) {
    port.sent_bytes += size;
    if (flow.uses_cc && hop > 0 && flow.remaining > 0)
      flow.telemetry.row(flow.remaining + flow.unacked - number_of(packet))[hop - 1] = {begin, port.waiting_bytes,
                                                                                        port.sent_bytes};
  }
  if (hop == 0) {
    flow.departs_at = port.busy_until;
    push(port.busy_until, EventKind::departed, flow_handle(flow_of(packet)));
    if (P::kNeeds.acks && flow.uses_cc) flow.departures.push(begin);
  }
  const Time arrives = port.busy_until + port.spec.latency_ps;
  if (hop + 1 == flow.hops) return leave_network(flow, packet, arrives);
  const InFlightPacket downstream{arrives, packet + kOneHop};
  if (port.wire.empty()) schedule_arrival(index, downstream);
  port.wire.push(downstream);
}

/// Handles a packet on its last link. Its delivery is an event only if it completes the flow; its CNP and its ack are
/// scheduled right away.
template <SenderProtocol P>
[[gnu::noinline]] void PacketEngine<P>::leave_network(Flow& flow, Packet packet, Time delivered) {
  const std::uint32_t slot = flow_of(packet);
  const bool marked = (packet & kMarkBit) != 0;
  if (number_of(packet) == 1) {
    flow.delivered_at = delivered;
    push(delivered, EventKind::deliver, flow_handle(slot));
  }
  if (P::kNeeds.cnps && marked && flow.remaining > 0 && delivered - flow.last_cnp >= kCnpInterval) {
    flow.last_cnp = delivered;
    push(delivered + flow.ack_ps, EventKind::cnp, flow_handle(slot));
  }
  if (!acks_matter(flow)) return;
  Time rtt = 0;
  if (P::kNeeds.acks && flow.uses_cc) {
    rtt = delivered + flow.ack_ps - flow.departures.front();
    flow.departures.pop();
  }
  flow.acks.push({delivered + flow.ack_ps, rtt, marked});
  if (flow.blocked && flow.acks.size() == 1) push(flow.acks.front().at, EventKind::ack, flow_handle(slot));
}

template <SenderProtocol P>
void PacketEngine<P>::departed(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.at_nic = false;
  flow.departs_at = kNever;
  if (flow.remaining == 0) return;
  if (flow.uses_cc) {
    flow.sender.sent(parameters_, packet_bytes_, now_);
    arm_timer(flow, slot);
  }
  const Port& nic = ports_[flow.path[0]];
  offer(slot, nic.senders == 1 && !nic.forwards);
}

template <SenderProtocol P>
void PacketEngine<P>::process_acks(Flow& flow) {
  for (; !flow.acks.empty() && flow.acks.front().at <= now_; flow.acks.pop()) {
    --flow.unacked;
    if (!P::kNeeds.acks || !flow.uses_cc) continue;
    const Ack& ack = flow.acks.front();
    Feedback feedback{ack.at, ack.rtt, packet_bytes_, flow.unacked, ack.marked, nullptr};
    if constexpr (P::kNeeds.telemetry) {
      for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
        const TelemetryRecord& link = flow.telemetry.row(0)[hop - 1];
        ack_telemetry_[hop - 1] = {link.at, link.waiting_bytes, link.sent_bytes,
                                   ports_[flow.path[hop]].spec.bits_per_second};
      }
      feedback.telemetry = ack_telemetry_.data();
      flow.sender.acknowledged(parameters_, feedback);
      flow.telemetry.pop();
    } else {
      flow.sender.acknowledged(parameters_, feedback);
    }
  }
}

template <SenderProtocol P>
bool PacketEngine<P>::window_open(Flow& flow, std::uint32_t slot) {
  process_acks(flow);
  if (fits_window(flow)) return true;
  flow.blocked = true;
  if (!flow.acks.empty()) push(flow.acks.front().at, EventKind::ack, flow_handle(slot));
  return false;
}

/// Offers the next packet of a flow to its NIC if window and pacing allow it. `sole_arrival`: no other packet can
/// arrive at this NIC at this instant, and its events of the first phase have been handled.
template <SenderProtocol P>
void PacketEngine<P>::offer(std::uint32_t slot, bool sole_arrival) {
  Flow& flow = flows_[slot];
  if (flow.remaining == 0 || flow.at_nic || flow.blocked) return;
  if (flow.counts_acks && !window_open(flow, slot)) return;
  if (flow.next_packet_at > now_) return push(flow.next_packet_at, EventKind::timer, flow_handle(slot));
  const Packet packet = make_packet(slot, flow.remaining);
  if (flow.uses_cc)
    if (const Time gap = flow.sender.gap(size_of(flow, packet)); gap > 0) flow.next_packet_at = now_ + gap;
  flow.at_nic = true;
  --flow.remaining;
  if (slot == watched_ && flow.remaining == watched_remaining_) {
    watched_ = kNoFlow;
    limit_ = inline_before_ = now_;
  }
  if (flow.counts_acks) ++flow.unacked;
  if (P::kNeeds.telemetry && flow.uses_cc) flow.telemetry.push();
  // The arrival is the next event, and needs no entry in the queue, unless something else is due at this instant.
  if (now_ < inline_before_ && (sole_arrival || events_.nothing_at(now_))) return arrive(packet);
  flow.offered = true;
  push(now_, EventKind::arrive, slot);
}

template <SenderProtocol P>
void PacketEngine<P>::timer(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (!flow.uses_cc || flow.remaining == 0) return;
  if (flow.timer_at <= now_) flow.timer_at = kNever;
  if (flow.sender.deadline() <= now_) flow.sender.expire(parameters_, now_);
  arm_timer(flow, slot);
  if (flow.next_packet_at <= now_) offer(slot);
}

/// Schedules a timer for the sender's deadline. Timers are never cancelled: an outdated one has no effect.
template <SenderProtocol P>
void PacketEngine<P>::arm_timer(Flow& flow, std::uint32_t slot) {
  const Time deadline = flow.sender.deadline();
  if (deadline >= flow.timer_at) return;
  flow.timer_at = deadline;
  push(deadline, EventKind::timer, flow_handle(slot));
}

}  // namespace manyworlds::core::network
