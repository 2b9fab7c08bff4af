// Time-sliced engine: the visit of a port that only forwards, and PFC. A packet train that does not overlap with others
// is served in closed form; overlapping trains are served in pieces between which no packet of another train arrives; a
// queue in which packets may be marked is served packet by packet. Pauses are derived after all ports of a slice.
#pragma once

#include <algorithm>

#include "core/base/error.hpp"
#include "core/network/time_sliced/time_sliced_engine.hpp"

namespace manyworlds::core::network {

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::sort_inbox() {
  for (std::size_t i = 1; i < arrivals_.size(); ++i) {
    if (!before(arrivals_[i], arrivals_[i - 1])) continue;
    const PacketTrain train = arrivals_[i];
    std::size_t hole = i;
    for (; hole > 0 && before(train, arrivals_[hole - 1]); --hole) arrivals_[hole] = arrivals_[hole - 1];
    arrivals_[hole] = train;
  }
}

/// Restores the order of the arrivals after the train at `from` has lost its first packets.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::reposition(std::size_t from) {
  if (arrivals_[from].count == 0 || from + 1 == arrivals_.size() || before(arrivals_[from], arrivals_[from + 1]))
    return;
  const PacketTrain train = arrivals_[from];
  for (; from + 1 < arrivals_.size() && before(arrivals_[from + 1], train); ++from)
    arrivals_[from] = arrivals_[from + 1];
  arrivals_[from] = train;
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::visit_switch(Port& port) {
  begin_marking(port);
  port_blocked_ = false;
  while (!port.queue.empty()) {
    PacketTrain& train = port.queue[0];
    const std::uint32_t served = send_burst(port, train, std::max(port.free_at, visit_begin_));
    port.waiting_bytes -= served * bytes_of(train);
    if (served < train.count) {
      take_front(train, served);
      port_blocked_ = true;
      break;
    }
    port.queue.pop();
  }
  sort_inbox();
  for (std::size_t next = 0; next < arrivals_.size();) {
    PacketTrain& train = arrivals_[next];
    std::uint32_t count = train.count;
    if (marking_) {
      count = 1;
    } else if (count > 1 && next + 1 < arrivals_.size()) {  // the packets that arrive before the next train
      const PacketTrain& other = arrivals_[next + 1];
      if (train.last() >= other.at) {
        count = static_cast<std::uint32_t>((other.at - train.at + train.gap - 1) / train.gap);
        if (count == 0 ||
            (train.at + count * train.gap == other.at && flows_[train.slot].tie_order < flows_[other.slot].tie_order))
          ++count;
      }
    }
    PacketTrain front = take_front(train, count);
    if (marking_) mark_if_queued(port, front);
    serve(port, front);
    if (train.count == 0)
      ++next;
    else
      reposition(next);
  }
  if (marking_ && port.queue.empty()) port.mark_error = 0;
}

/// Serves packets during whose arrival no other packets arrive at the port.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::serve(Port& port, PacketTrain train) {
  const Time sending = sending_ps(port, train);
  while (train.count > 0) {
    if (port_blocked_) {
      change(train, 1);
      return enqueue(port, train);
    }
    Time begins = std::max(train.at, port.free_at);
    if (begins == train.at && port.pfc_transitions.empty() && !port.paused &&
        (train.gap >= sending || train.count == 1)) {
      port.free_at = train.last() + sending;
      return send(port, train);  // every packet on arrival
    }
    if (begins < visit_end_) begins = unpaused_at(port, begins);
    if (begins == train.at) {
      port.free_at = begins + sending;
      send(port, take_front(train, 1));
      continue;
    }
    if (train.count == 1 && begins < visit_end_) return serve_delayed(port, train, begins, sending);
    // The first packet waits, and so do those that arrive before their predecessors have been sent.
    std::uint32_t waiting = train.count;
    if (begins < visit_end_ && train.count > 1) {
      if (!port.pfc_transitions.empty())
        waiting = 1;
      else if (train.gap > sending)
        waiting = static_cast<std::uint32_t>(
            std::min<Time>(train.count, (begins - train.at + train.gap - sending - 1) / (train.gap - sending)));
    }
    PacketTrain queued_train = take_front(train, waiting);
    change(queued_train, 1);
    const std::uint32_t served = begins < visit_end_ ? send_burst(port, queued_train, begins) : 0;
    if (served < queued_train.count) {
      port_blocked_ = true;
      take_front(queued_train, served);
      enqueue(port, queued_train);
    }
  }
}

/// Serves one packet that waits and is sent within this visit: the most frequent case of send_burst().
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::serve_delayed(Port& port, PacketTrain train, Time begins, Time sending) {
  if (Port& ingress = ingress_of(train); ingress.may_pause) {
    const std::int64_t bytes = bytes_of(train);
    ingress.added_bytes += bytes;
    ingress.ingress_deltas.push_back({train.at, 0, bytes, 1});
    ingress.ingress_deltas.push_back({begins, 0, -bytes, 1});
  }
  if (marking_) transmissions_.push_back({begins, bytes_of(train)});
  train.at = begins;
  port.free_at = begins + sending;
  send(port, train);
}

/// Sends packets back to back from `from` on and returns how many of them begin in this visit.
template <TimeSlicedProtocol P>
std::uint32_t TimeSlicedEngine<P>::send_burst(Port& port, PacketTrain train, Time from) {
  const Time sending = sending_ps(port, train);
  std::uint32_t served = 0;
  while (train.count > 0) {
    if (from < visit_end_) from = unpaused_at(port, from);
    if (from >= visit_end_) break;
    const Time until =
        port.pfc_transitions.empty() ? visit_end_ : std::min(visit_end_, port.pfc_transitions.front().at);
    std::uint32_t count = 1;
    if (train.count > 1 && from + sending < until)
      count = static_cast<std::uint32_t>(std::min<Time>(train.count, (until - 1 - from) / sending + 1));
    train.at = from, train.gap = sending;
    const PacketTrain sent = take_front(train, count);
    change(sent, -1);
    if (marking_)
      for (std::uint32_t i = 0; i < count; ++i) transmissions_.push_back({from + i * sending, bytes_of(sent)});
    send(port, sent);
    served += count;
    port.free_at = from += count * sending;
  }
  return served;
}

/// Queues packets that wait beyond this visit.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::enqueue(Port& port, const PacketTrain& train) {
  port.waiting_bytes += train.count * bytes_of(train);
  TimeSlicedExchange<P>::append_waiting(port.queue, train);
}

// --- ECN marking ---

/// Determines whether a packet may be marked in this visit; if so, the queue is tracked packet by packet.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::begin_marking(const Port& port) {
  marking_ = false;
  if (!ecn_enabled_ || port.spec.leaves_gpu) return;
  std::int64_t max_waiting_bytes = port.waiting_bytes;
  for (const PacketTrain& train : arrivals_) max_waiting_bytes += train.count * bytes_of(train);
  marking_ = port.mark_error != 0 || max_waiting_bytes > port.kmin;
  marking_bytes_ = port.waiting_bytes;
  transmissions_.clear();
  next_transmission_ = 0;
}

/// Considers marking a packet that arrives at the port of a switch, if it has to wait there.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::mark_if_queued(Port& port, PacketTrain& packet) {
  if (!port_blocked_) {
    Time begins = std::max(packet.at, port.free_at);
    if (begins < visit_end_) begins = unpaused_at(port, begins);
    if (begins == packet.at) return;
    if (begins < visit_end_) port.free_at = begins;  // not before the resume that was just reached
  }
  for (; next_transmission_ < transmissions_.size() && transmissions_[next_transmission_].at <= packet.at;
       ++next_transmission_)
    marking_bytes_ -= transmissions_[next_transmission_].bytes;
  if (marking_bytes_ == 0) port.mark_error = 0;  // an idle port has no marking history
  if (flows_[packet.slot].uses_cc && mark(port, marking_bytes_)) packet.marked = true;
  marking_bytes_ += bytes_of(packet);
}

template <TimeSlicedProtocol P>
bool TimeSlicedEngine<P>::mark(Port& port, std::int64_t waiting) {
  const bool marked = mark_next_packet(port, waiting, transport_.ecn_pmax_ppm);
  counters_.ecn_marks += marked;
  return marked;
}

// --- forwarding ---

/// Forwards packets whose transmissions begin at train.at, train.at + train.gap, and so on.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::send(const Port& port, PacketTrain train) {
  const Flow& flow = flows_[train.slot];
  counters_.link_hops += train.count;
  train.at += sending_ps(port, train) + port.spec.latency_ps;
  if (++train.hop == flow.hops) return leave_network(train);
  const std::uint32_t next = flow.path[train.hop];
  TimeSlicedExchange<P>::append_train(ports_[next].inbox, train);
  schedule(next, train.at);
}

/// Handles packets on their last link: the completion of the flow, CNPs and acks.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::leave_network(const PacketTrain& train) {
  Flow& flow = flows_[train.slot];
  if (train.first == 1) {
    flow.delivered_at = train.at;
    push_heap(completions_, {train.at, train.slot});
  }
  if (P::kNeeds.cnps && train.marked && flow.remaining > 0)
    for (std::uint32_t i = 0; i < train.count; ++i) {
      const Time delivered = train.at + i * train.gap;
      if (delivered - flow.last_cnp < kCnpInterval) continue;
      flow.last_cnp = delivered;
      flow.cnps.push(delivered + flow.ack_ps);
      schedule(flow.path[0], delivered + flow.ack_ps);
    }
  if (!acks_matter(flow)) return;
  const bool join_filter = flow.blocked && flow.acks.empty();
  add_ack(flow, {train.at + flow.ack_ps, train.gap, train.count});
  if (join_filter) schedule(flow.path[0], train.at + flow.ack_ps);
}

// --- PFC ---

/// Returns the link over which packets arrived at their current switch, and prepares it for changes in this round.
template <TimeSlicedProtocol P>
auto TimeSlicedEngine<P>::ingress_of(const PacketTrain& train) -> Port& {
  const std::uint32_t from = flows_[train.slot].path[train.hop - 1u];
  Port& ingress = ports_[from];
  if (ingress.touched_in_round != round_) {
    ingress.touched_in_round = round_;
    ingress.may_pause =
        ingress.pause_wanted || ingress.ingress_bytes + ingress.max_slice_bytes > transport_.pfc_xoff_bytes;
    if (ingress.may_pause) touched_ingresses_.push_back(from);
  }
  return ingress;
}

/// Records that packets begin (sign 1) or cease (sign -1) to wait.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::change(const PacketTrain& train, std::int64_t sign) {
  Port& ingress = ingress_of(train);
  const std::int64_t bytes = sign * bytes_of(train);
  if (!ingress.may_pause) {
    ingress.ingress_bytes += bytes * train.count;
    return;
  }
  if (sign > 0) ingress.added_bytes += bytes * train.count;
  if (!ingress.ingress_deltas.empty()) {
    IngressDelta& last = ingress.ingress_deltas.back();
    const Time gap = last.count > 1 ? last.gap : train.at - last.at;
    if (last.bytes == bytes && train.at == last.at + last.count * gap && (train.count == 1 || train.gap == gap)) {
      last.gap = gap;
      last.count += train.count;
      return;
    }
  }
  ingress.ingress_deltas.push_back({train.at, train.gap, bytes, train.count});
}

/// Applies the changes of this round to the ingress links that may be paused or resumed.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::update_pfc() {
  for (const std::uint32_t index : touched_ingresses_) {
    Port& port = ports_[index];
    if (!port.pause_wanted && port.ingress_bytes + port.added_bytes <= transport_.pfc_xoff_bytes)
      for (const IngressDelta& change : port.ingress_deltas) port.ingress_bytes += change.bytes * change.count;
    else
      update_pfc_in_order(port, index);
    port.ingress_deltas.clear();
    port.added_bytes = 0;
  }
  touched_ingresses_.clear();
}

/// Applies the changes of an ingress link in order of time and schedules the pauses and resumes that follow.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::update_pfc_in_order(Port& port, std::uint32_t index) {
  unrolled_deltas_.clear();
  for (const IngressDelta& change : port.ingress_deltas)
    for (std::uint32_t i = 0; i < change.count; ++i)
      unrolled_deltas_.push_back({change.at + i * change.gap, change.bytes});
  std::sort(unrolled_deltas_.begin(), unrolled_deltas_.end(), [](const TimedBytes& a, const TimedBytes& b) {
    return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;  // at one instant, departures before arrivals
  });
  for (const auto& [at, bytes] : unrolled_deltas_) {
    port.ingress_bytes += bytes;
    MANYWORLDS_CHECK(port.ingress_bytes <= transport_.buffer_bytes, "a lossless buffer holds {} of {} bytes",
                     port.ingress_bytes, transport_.buffer_bytes);
    const bool pause = bytes > 0 && !port.pause_wanted && port.ingress_bytes > transport_.pfc_xoff_bytes;
    const bool resume = bytes < 0 && port.pause_wanted && port.ingress_bytes <= transport_.pfc_xon_bytes;
    if (!pause && !resume) continue;
    port.pause_wanted = pause;
    pausing_ingresses_ += pause ? 1 : -1;
    counters_.pauses += pause;
    pfc_until_ = std::max(pfc_until_, at + port.control_ps);
    port.pfc_transitions.push({at + port.control_ps, pause});
    schedule(index, at + port.control_ps);
  }
}

}  // namespace manyworlds::core::network
