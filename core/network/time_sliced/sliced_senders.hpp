// Of the sliced engine: a port with senders in one slice, packet by packet. They take turns as packet_engine.hpp says:
// each offers its next packet when the one before has left.
#pragma once

#include <algorithm>
#include <functional>

#include "core/base/error.hpp"
#include "core/network/time_sliced/sliced_engine.hpp"

namespace manyworlds::core::network {

template <SlicedProtocol P>
void SlicedEngine<P>::visit_senders(Port& port) {
  const bool only_offered = port.queue.empty() || (port.queue.size() == 1 && port.queue.front().hop == 0);
  if (port.senders.size() == 1 && in_.empty() && only_offered) return visit_sender(port, port.senders[0]);
  sort_inbox();
  next_in_ = 0;
  wakes_.clear();
  out_.count = 0;
  for (const std::uint32_t slot : port.senders) expect(slot);
  for (Time at = next_in(port, begin_); at < end_; at = next_in(port, at)) {
    offered_.clear();
    while (!wakes_.empty() && wakes_.front().first <= at) {
      const auto [due, slot] = pop_heap(wakes_);
      Flow& flow = flows_[slot];
      if (flow.wake_at != due) continue;  // overtaken
      flow.wake_at = kNever;
      wake(flow, at);
      if (flow.offered_at == at)
        offered_.push_back(slot);
      else
        expect(slot);
    }
    for (; !port.toggles.empty() && port.toggles.front().at <= at; port.toggles.pop())
      port.paused = port.toggles.front().pause;
    if (!port.queue.empty() && !port.paused && port.free_at <= at) serve_head(port, at);
    arrive_all(port, at);
  }
  flush(port);
  std::erase_if(port.senders, [&](std::uint32_t slot) { return flows_[slot].left == 0 && !flows_[slot].at_nic; });
}

/// One sender and nothing else: its packet, then what happens to it until the next.
template <SlicedProtocol P>
void SlicedEngine<P>::visit_sender(Port& port, std::uint32_t slot) {
  Flow& flow = flows_[slot];
  out_.count = 0;
  for (;;) {
    if (flow.offered_at < end_ || !port.queue.empty()) {
      Time at = std::max(port.free_at, port.queue.empty() ? flow.offered_at : begin_);
      if (at < end_) at = clear_from(port, at);
      if (at < end_) {
        send_offered(port, slot, at);
      } else if (port.queue.empty()) {
        port.queue.push(offered_by(slot));
        port.waiting_bytes += bytes_of(port.queue.front());
      }
    }
    const Time at = wake_of(flow);
    if (at >= end_) break;
    wake(flow, at);
  }
  flush(port);
  if (flow.left == 0 && !flow.at_nic) port.senders.clear();
}

template <SlicedProtocol P>
void SlicedEngine<P>::send_offered(Port& port, std::uint32_t slot, Time at) {
  if (!port.queue.empty()) {
    port.waiting_bytes -= bytes_of(port.queue.front());
    port.queue.pop();
    port.mark_error = 0;
  }
  transmit(port, offered_by(slot), at);
}

/// The packet that its sender offered last.
template <SlicedProtocol P>
auto SlicedEngine<P>::offered_by(std::uint32_t slot) -> Run {
  Flow& flow = flows_[slot];
  flow.offered_at = kNever;
  Run packet;
  packet.slot = slot;
  packet.first = flow.left + 1;
  packet.count = 1;
  return packet;
}

/// When something happens next: to a sender, to a pause, to what waits, to what arrives.
template <SlicedProtocol P>
Time SlicedEngine<P>::next_in(const Port& port, Time after) const {
  Time next = wakes_.empty() ? kNever : wakes_.front().first;
  if (!port.toggles.empty()) next = std::min(next, port.toggles.front().at);
  if (!port.queue.empty() && !port.paused) next = std::min(next, std::max(port.free_at, after));
  if (next_in_ < in_.size()) next = std::min(next, in_[next_in_].at);
  return next;
}

template <SlicedProtocol P>
Time SlicedEngine<P>::wake_of(const Flow& flow) const {
  Time at = std::min(flow.offered_at, flow.departs_at);
  if (flow.left == 0) return at;
  if (!flow.notices.empty()) at = std::min(at, flow.notices.front());
  if (flow.managed) at = std::min(at, flow.sender.deadline());
  if (flow.at_nic) return at;
  if (!flow.blocked) return std::min(at, flow.next_packet_at);
  return flow.acks.empty() ? at : std::min(at, flow.acks.front().at);
}

template <SlicedProtocol P>
void SlicedEngine<P>::expect(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.wake_at = wake_of(flow);
  if (flow.wake_at < end_) push_heap(wakes_, {flow.wake_at, slot});
}

/// All that ends at this instant and touches a sender, in the order of Kind.
template <SlicedProtocol P>
void SlicedEngine<P>::wake(Flow& flow, Time at) {
  if (flow.blocked && !flow.acks.empty() && flow.acks.front().at <= at) {
    flow.blocked = false;
    offer(flow, at);
  }
  if (flow.left > 0 && !flow.notices.empty() && flow.notices.front() <= at) {
    flow.notices.pop();
    flow.sender.notified(parameters_, at);
  }
  if (flow.left > 0 && flow.managed) {
    if (flow.sender.deadline() <= at) flow.sender.expire(parameters_, at);
    if (flow.next_packet_at <= at) offer(flow, at);
  }
  if (flow.departs_at != at) return;
  flow.at_nic = false;
  flow.departs_at = kNever;
  if (flow.left == 0) return;
  if (flow.managed) flow.sender.sent(parameters_, packet_bytes_, at);
  offer(flow, at);
}

/// Its next packet arrives at the NIC at this instant, if it may.
template <SlicedProtocol P>
void SlicedEngine<P>::offer(Flow& flow, Time at) {
  if (flow.left == 0 || flow.at_nic || flow.blocked || flow.next_packet_at > at) return;
  if (flow.counts_acks) {
    take_acks(flow, at);
    flow.blocked = !fits(flow);
    if (flow.blocked) return;
    ++flow.unacked;
  }
  if (flow.managed)
    if (const Time gap = flow.sender.gap(flow.left == 1 ? flow.last_bytes : packet_bytes_); gap > 0)
      flow.next_packet_at = at + gap;
  flow.at_nic = true;
  --flow.left;
  flow.offered_at = at;
}

template <SlicedProtocol P>
void SlicedEngine<P>::add_ack(Flow& flow, const AckRun& acks) {
  if (!flow.acks.empty()) {
    AckRun& last = flow.acks.back();
    const Time gap = last.count > 1 ? last.gap : acks.at - last.at;
    if (acks.at == last.at + last.count * gap && (acks.count == 1 || acks.gap == gap)) {
      last.gap = gap;
      last.count += acks.count;
      return;
    }
  }
  flow.acks.push(acks);
}

template <SlicedProtocol P>
void SlicedEngine<P>::take_acks(Flow& flow, Time at) {
  while (!flow.acks.empty() && flow.acks.front().at <= at) {
    AckRun& acks = flow.acks[0];
    if (acks.last() <= at) {
      flow.unacked -= acks.count;
      flow.acks.pop();
      continue;
    }
    const auto come = static_cast<std::uint32_t>((at - acks.at) / acks.gap + 1);
    flow.unacked -= come;
    acks.count -= come;
    acks.at += come * acks.gap;
  }
}

/// What senders offer and what comes over links at this instant.
template <SlicedProtocol P>
void SlicedEngine<P>::arrive_all(Port& port, Time at) {
  std::sort(offered_.begin(), offered_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return flows_[a].order < flows_[b].order; });
  std::size_t next = 0;
  for (;;) {
    const bool over_link = next_in_ < in_.size() && in_[next_in_].at == at;
    if (over_link && (next == offered_.size() || flows_[in_[next_in_].slot].order < flows_[offered_[next]].order)) {
      const Run packet = first_of(in_[next_in_], 1);
      keep_order(next_in_);
      if (in_[next_in_].count == 0) ++next_in_;
      arrive(port, packet, at);
    } else if (next < offered_.size()) {
      const std::uint32_t slot = offered_[next++];
      arrive(port, offered_by(slot), at);
      expect(slot);
    } else {
      return;
    }
  }
}

template <SlicedProtocol P>
void SlicedEngine<P>::arrive(Port& port, Run packet, Time at) {
  if (port.free_at <= at && !port.paused && port.queue.empty()) return transmit(port, packet, at);
  const std::int64_t bytes = bytes_of(packet);
  if (packet.hop > 0) {
    change(packet, 1);
    if (marks_ && !port.spec.leaves_gpu && flows_[packet.slot].managed) packet.marked |= mark(port, port.waiting_bytes);
  }
  port.waiting_bytes += bytes;
  SlicedExchange<P>::add_waiting(port.queue, packet);
}

/// What waits longest goes.
template <SlicedProtocol P>
void SlicedEngine<P>::serve_head(Port& port, Time at) {
  Run packet = first_of(port.queue[0], 1);
  if (port.queue.front().count == 0) port.queue.pop();
  packet.at = at;
  port.waiting_bytes -= bytes_of(packet);
  if (port.queue.empty()) port.mark_error = 0;
  if (packet.hop > 0) change(packet, -1);
  transmit(port, packet, at);
  if (packet.hop == 0) expect(packet.slot);
}

template <SlicedProtocol P>
void SlicedEngine<P>::transmit(Port& port, const Run& packet, Time at) {
  port.free_at = at + sending_ps(port, packet);
  if (packet.hop == 0) flows_[packet.slot].departs_at = port.free_at;
  const bool follows = out_.count > 0 && out_.slot == packet.slot && out_.hop == packet.hop && packet.first > 1 &&
                       out_.first - out_.count == packet.first && out_.marked == packet.marked;
  if (follows && (out_.count == 1 || at == out_.at + out_.count * out_.gap)) {
    out_.gap = out_.count == 1 ? at - out_.at : out_.gap;
    ++out_.count;
    return;
  }
  flush(port);
  out_ = packet;
  out_.at = at;
  out_.gap = 0;
}

template <SlicedProtocol P>
void SlicedEngine<P>::flush(Port& port) {
  if (out_.count > 0) send(port, out_);
  out_.count = 0;
}

}  // namespace manyworlds::core::network
