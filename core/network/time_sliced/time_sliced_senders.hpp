// Time-sliced engine: the visit of a port with senders, packet by packet. As in packet_engine.hpp, each sender offers
// its next packet when the previous one has left, so senders share the port packet by packet.
#pragma once

#include <algorithm>
#include <functional>

#include "core/base/error.hpp"
#include "core/network/time_sliced/time_sliced_engine.hpp"

namespace manyworlds::core::network {

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::visit_senders(Port& port) {
  const bool only_offered = port.queue.empty() || (port.queue.size() == 1 && port.queue.front().hop == 0);
  if (port.senders.size() == 1 && arrivals_.empty() && only_offered) return visit_sender(port, port.senders[0]);
  sort_inbox();
  next_arrival_ = 0;
  wakes_.clear();
  outgoing_.count = 0;
  for (const std::uint32_t slot : port.senders) schedule_wake(slot);
  for (Time at = next_event_at(port, visit_begin_); at < visit_end_; at = next_event_at(port, at)) {
    offered_.clear();
    while (!wakes_.empty() && wakes_.front().first <= at) {
      const auto [due, slot] = pop_heap(wakes_);
      Flow& flow = flows_[slot];
      if (flow.wake_at != due) continue;  // superseded
      flow.wake_at = kNever;
      wake(flow, at);
      if (flow.offered_at == at)
        offered_.push_back(slot);
      else
        schedule_wake(slot);
    }
    for (; !port.pfc_transitions.empty() && port.pfc_transitions.front().at <= at; port.pfc_transitions.pop())
      port.paused = port.pfc_transitions.front().pause;
    if (!port.queue.empty() && !port.paused && port.free_at <= at) serve_head(port, at);
    arrive_all(port, at);
  }
  flush(port);
  std::erase_if(port.senders, [&](std::uint32_t slot) { return flows_[slot].remaining == 0 && !flows_[slot].at_nic; });
}

/// Visits a port with one sender and no other packets: sends its packet, then handles its events until the next one.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::visit_sender(Port& port, std::uint32_t slot) {
  Flow& flow = flows_[slot];
  outgoing_.count = 0;
  for (;;) {
    if (flow.offered_at < visit_end_ || !port.queue.empty()) {
      Time at = std::max(port.free_at, port.queue.empty() ? flow.offered_at : visit_begin_);
      if (at < visit_end_) at = unpaused_at(port, at);
      if (at < visit_end_) {
        send_offered(port, slot, at);
      } else if (port.queue.empty()) {
        port.queue.push(take_offered(slot));
        port.waiting_bytes += bytes_of(port.queue.front());
      }
    }
    const Time at = next_wake(flow);
    if (at >= visit_end_) break;
    wake(flow, at);
  }
  flush(port);
  if (flow.remaining == 0 && !flow.at_nic) port.senders.clear();
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::send_offered(Port& port, std::uint32_t slot, Time at) {
  if (!port.queue.empty()) {
    port.waiting_bytes -= bytes_of(port.queue.front());
    port.queue.pop();
    port.mark_error = 0;
  }
  transmit(port, take_offered(slot), at);
}

/// Takes the packet that the sender offered last.
template <TimeSlicedProtocol P>
auto TimeSlicedEngine<P>::take_offered(std::uint32_t slot) -> PacketTrain {
  Flow& flow = flows_[slot];
  flow.offered_at = kNever;
  PacketTrain packet;
  packet.slot = slot;
  packet.first = flow.remaining + 1;
  packet.count = 1;
  return packet;
}

/// Returns the time of the next event of a port: of a sender, a pause or resume, the queue, or an arrival.
template <TimeSlicedProtocol P>
Time TimeSlicedEngine<P>::next_event_at(const Port& port, Time after) const {
  Time next = wakes_.empty() ? kNever : wakes_.front().first;
  if (!port.pfc_transitions.empty()) next = std::min(next, port.pfc_transitions.front().at);
  if (!port.queue.empty() && !port.paused) next = std::min(next, std::max(port.free_at, after));
  if (next_arrival_ < arrivals_.size()) next = std::min(next, arrivals_[next_arrival_].at);
  return next;
}

/// Returns the time of the next event of a sender.
template <TimeSlicedProtocol P>
Time TimeSlicedEngine<P>::next_wake(const Flow& flow) const {
  Time at = std::min(flow.offered_at, flow.departs_at);
  if (flow.remaining == 0) return at;
  if (!flow.cnps.empty()) at = std::min(at, flow.cnps.front());
  if (flow.uses_cc) at = std::min(at, flow.sender.deadline());
  if (flow.at_nic) return at;
  if (!flow.blocked) return std::min(at, flow.next_packet_at);
  return flow.acks.empty() ? at : std::min(at, flow.acks.front().at);
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::schedule_wake(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.wake_at = next_wake(flow);
  if (flow.wake_at < visit_end_) push_heap(wakes_, {flow.wake_at, slot});
}

/// Handles the events of the first phase of this instant that affect a sender, in the order of EventKind.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::wake(Flow& flow, Time at) {
  if (flow.blocked && !flow.acks.empty() && flow.acks.front().at <= at) {
    flow.blocked = false;
    offer(flow, at);
  }
  if (flow.remaining > 0 && !flow.cnps.empty() && flow.cnps.front() <= at) {
    flow.cnps.pop();
    flow.sender.notified(parameters_, at);
  }
  if (flow.remaining > 0 && flow.uses_cc) {
    if (flow.sender.deadline() <= at) flow.sender.expire(parameters_, at);
    if (flow.next_packet_at <= at) offer(flow, at);
  }
  if (flow.departs_at != at) return;
  flow.at_nic = false;
  flow.departs_at = kNever;
  if (flow.remaining == 0) return;
  if (flow.uses_cc) flow.sender.sent(parameters_, packet_bytes_, at);
  offer(flow, at);
}

/// Offers the next packet of a flow to its NIC at this instant if window and pacing allow it.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::offer(Flow& flow, Time at) {
  if (flow.remaining == 0 || flow.at_nic || flow.blocked || flow.next_packet_at > at) return;
  if (flow.counts_acks) {
    process_acks(flow, at);
    flow.blocked = !fits_window(flow);
    if (flow.blocked) return;
    ++flow.unacked;
  }
  if (flow.uses_cc)
    if (const Time gap = flow.sender.gap(flow.remaining == 1 ? flow.last_bytes : packet_bytes_); gap > 0)
      flow.next_packet_at = at + gap;
  flow.at_nic = true;
  --flow.remaining;
  flow.offered_at = at;
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::add_ack(Flow& flow, const AckTrain& acks) {
  if (!flow.acks.empty()) {
    AckTrain& last = flow.acks.back();
    const Time gap = last.count > 1 ? last.gap : acks.at - last.at;
    if (acks.at == last.at + last.count * gap && (acks.count == 1 || acks.gap == gap)) {
      last.gap = gap;
      last.count += acks.count;
      return;
    }
  }
  flow.acks.push(acks);
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::process_acks(Flow& flow, Time at) {
  while (!flow.acks.empty() && flow.acks.front().at <= at) {
    AckTrain& acks = flow.acks[0];
    if (acks.last() <= at) {
      flow.unacked -= acks.count;
      flow.acks.pop();
      continue;
    }
    const auto arrived = static_cast<std::uint32_t>((at - acks.at) / acks.gap + 1);
    flow.unacked -= arrived;
    acks.count -= arrived;
    acks.at += arrived * acks.gap;
  }
}

/// Handles the arrivals of this instant, from senders and over links, by tie order.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::arrive_all(Port& port, Time at) {
  std::sort(offered_.begin(), offered_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return flows_[a].tie_order < flows_[b].tie_order; });
  std::size_t next = 0;
  for (;;) {
    const bool over_link = next_arrival_ < arrivals_.size() && arrivals_[next_arrival_].at == at;
    if (over_link && (next == offered_.size() ||
                      flows_[arrivals_[next_arrival_].slot].tie_order < flows_[offered_[next]].tie_order)) {
      const PacketTrain packet = take_front(arrivals_[next_arrival_], 1);
      reposition(next_arrival_);
      if (arrivals_[next_arrival_].count == 0) ++next_arrival_;
      arrive(port, packet, at);
    } else if (next < offered_.size()) {
      const std::uint32_t slot = offered_[next++];
      arrive(port, take_offered(slot), at);
      schedule_wake(slot);
    } else {
      return;
    }
  }
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::arrive(Port& port, PacketTrain packet, Time at) {
  if (port.free_at <= at && !port.paused && port.queue.empty()) return transmit(port, packet, at);
  const std::int64_t bytes = bytes_of(packet);
  if (packet.hop > 0) {
    change(packet, 1);
    if (ecn_enabled_ && !port.spec.leaves_gpu && flows_[packet.slot].uses_cc)
      packet.marked |= mark(port, port.waiting_bytes);
  }
  port.waiting_bytes += bytes;
  TimeSlicedExchange<P>::append_waiting(port.queue, packet);
}

/// Sends the first packet of the queue.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::serve_head(Port& port, Time at) {
  PacketTrain packet = take_front(port.queue[0], 1);
  if (port.queue.front().count == 0) port.queue.pop();
  packet.at = at;
  port.waiting_bytes -= bytes_of(packet);
  if (port.queue.empty()) port.mark_error = 0;
  if (packet.hop > 0) change(packet, -1);
  transmit(port, packet, at);
  if (packet.hop == 0) schedule_wake(packet.slot);
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::transmit(Port& port, const PacketTrain& packet, Time at) {
  port.free_at = at + sending_ps(port, packet);
  if (packet.hop == 0) flows_[packet.slot].departs_at = port.free_at;
  const bool follows = outgoing_.count > 0 && outgoing_.slot == packet.slot && outgoing_.hop == packet.hop &&
                       packet.first > 1 && outgoing_.first - outgoing_.count == packet.first &&
                       outgoing_.marked == packet.marked;
  if (follows && (outgoing_.count == 1 || at == outgoing_.at + outgoing_.count * outgoing_.gap)) {
    outgoing_.gap = outgoing_.count == 1 ? at - outgoing_.at : outgoing_.gap;
    ++outgoing_.count;
    return;
  }
  flush(port);
  outgoing_ = packet;
  outgoing_.at = at;
  outgoing_.gap = 0;
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::flush(Port& port) {
  if (outgoing_.count > 0) send(port, outgoing_);
  outgoing_.count = 0;
}

}  // namespace manyworlds::core::network
