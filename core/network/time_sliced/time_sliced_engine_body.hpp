// Time-sliced engine: links, flows, completions, and the calendar of port visits.
#pragma once

#include <functional>
#include <utility>

#include "core/base/error.hpp"
#include "core/network/event_driven/packet_engine_setup.hpp"
#include "core/network/time_sliced/time_sliced_engine.hpp"
#include "core/network/time_sliced/time_sliced_exchange.hpp"
#include "core/network/time_sliced/time_sliced_senders.hpp"
#include "core/network/time_sliced/time_sliced_switches.hpp"

namespace manyworlds::core::network {

template <TimeSlicedProtocol P>
TimeSlicedEngine<P>::TimeSlicedEngine(const Transport& transport, const typename P::Parameters& parameters,
                                      bool ecn_enabled)
    : Pinned(transport, parameters, ecn_enabled), event_driven_(transport, parameters, ecn_enabled) {}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::reset() {
  delegates_ = false;
  now_ = last_activity_ = pfc_until_ = 0;
  pausing_ingresses_ = 0;
  clear_calendar();
  slice_width_ = slice_end_ = kNever;
  current_slice_ = 0, visited_until_ = 0;
  recycle_all(ports_, spare_ports_);
  recycle_all(flows_, spare_flows_);
  free_.clear();
  completions_.clear();
  live_ = 0;
  counters_ = {};
}

template <TimeSlicedProtocol P>
std::uint32_t TimeSlicedEngine<P>::add_link(const LinkSpec& spec) {
  if (!delegates_ && latency_too_short(spec)) switch_to_event_driven();
  if (delegates_) return event_driven_.add_link(spec);
  if (spec.latency_ps < slice_width_) set_slice_width(spec.latency_ps);
  const std::uint32_t slot = append_slot(ports_, spare_ports_);
  Port& port = ports_[slot];
  port.queue.clear(), port.inbox.clear(), port.pfc_transitions.clear(), port.ingress_deltas.clear(),
      port.senders.clear();
  this->set_link_parameters(port, spec);
  port.max_slice_bytes = (spec.latency_ps / port.full_packet_ps + 2) * packet_bytes_;  // a slice is at most the latency
  port.free_at = port.waiting_bytes = port.ingress_bytes = port.mark_error = port.added_bytes = 0;
  port.scheduled = port.touched_in_round = 0;
  port.paused = port.pause_wanted = port.may_pause = false;
  return slot;
}

template <TimeSlicedProtocol P>
std::uint32_t TimeSlicedEngine<P>::start(const Route& route, std::int64_t bytes, std::uint64_t tie_order) {
  if (delegates_) return event_driven_.start(route, bytes, tie_order);
  const std::uint32_t slot = acquire_slot();
  Flow& flow = flows_[slot];
  set_up(flow, route, tie_order);
  this->set_size(flow, bytes);
  this->init_sender(flow, ports_, now_);
  flow.next_packet_at = now_;
  flow.last_cnp = now_ - kCnpInterval;
  offer(flow, now_);
  ports_[route[0]].senders.push_back(slot);
  schedule(route[0], now_);
  return slot;
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::set_up(Flow& flow, const Route& route, std::uint64_t tie_order) {
  static_cast<FlowState&>(flow) = FlowState{};
  flow.acks.clear();
  flow.cnps.clear();
  flow.tie_order = tie_order;
  flow.live = true;
  this->set_path(flow, route, ports_);
  ++live_;
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::set_tie_order(std::uint32_t flow_slot, std::uint64_t tie_order) {
  if (delegates_)
    event_driven_.set_tie_order(flow_slot, tie_order);
  else
    flows_[flow_slot].tie_order = tie_order;
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::run(Time limit, std::vector<std::uint32_t>& completed) {
  if (delegates_) return event_driven_.run(limit, completed);
  for (;;) {
    if (!completions_.empty() && completions_.front().first < slice_end_) {
      if (completions_.front().first > limit) break;
      now_ = last_activity_ = completions_.front().first;
      while (!completions_.empty() && completions_.front().first == now_) {
        const std::uint32_t slot = pop_heap(completions_).second;
        flows_[slot].live = false;
        --live_;
        free_.push_back(slot);
        completed.push_back(slot);
      }
      return;
    }
    if (limit < slice_end_) break;
    if (ring_count_ > 0) {
      visit_until(slice_end_);
      refill_ring();
      continue;
    }
    Time to = limit;
    if (!completions_.empty()) to = std::min(to, completions_.front().first);
    if (!later_.empty()) to = std::min(to, later_.front().first * slice_width_);
    if (to == kNever) {  // no event is pending
      limit = std::max(now_, pfc_until_);
      if (limit >= slice_end_) jump_to(limit);
      break;
    }
    jump_to(to);
    refill_ring();
  }
  now_ = limit;
}

// --- calendar ---

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::push_heap(std::vector<Timed>& heap, const Timed& item) {
  heap.push_back(item);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

template <TimeSlicedProtocol P>
auto TimeSlicedEngine<P>::pop_heap(std::vector<Timed>& heap) -> Timed {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const Timed first = heap.back();
  heap.pop_back();
  return first;
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::schedule_in_slice(std::uint32_t port, std::int64_t slice) {
  if (slice >= current_slice_ + kRingSlices) {
    later_.emplace_back(slice, port);
    return std::push_heap(later_.begin(), later_.end(), std::greater<>());
  }
  const auto place = static_cast<std::size_t>(slice & (kRingSlices - 1));
  const std::uint64_t bit = std::uint64_t{1} << place;
  if ((ports_[port].scheduled & bit) != 0) return;
  ports_[port].scheduled |= bit;
  ring_[place].push_back(port);
  ++ring_count_;
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::clear_calendar() {
  for (auto& ports : ring_) ports.clear();
  for (Port& port : ports_) port.scheduled = 0;
  ring_count_ = 0;
  later_.clear();
}

/// Restarts the calendar at `now`, with no port scheduled.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::set_time(Time now) {
  now_ = visited_until_ = now;
  current_slice_ = slice_width_ == kNever ? 0 : now / slice_width_;
  slice_end_ = slice_width_ == kNever ? kNever : (current_slice_ + 1) * slice_width_;
}

/// Advances to the slice of `to`; no port is scheduled before it.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::jump_to(Time to) {
  current_slice_ = to / slice_width_;
  visited_until_ = std::max(visited_until_, current_slice_ * slice_width_);
  slice_end_ = (current_slice_ + 1) * slice_width_;
}

/// Moves ports whose slices are now near from the heap to the ring.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::refill_ring() {
  while (!later_.empty() && later_.front().first < current_slice_ + kRingSlices) {
    std::pop_heap(later_.begin(), later_.end(), std::greater<>());
    const auto [slice, port] = later_.back();
    later_.pop_back();
    schedule_in_slice(port, slice);
  }
}

/// Visits the ports scheduled in the current slice, from the end of the previous visit to `end`, at most the slice's
/// end.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::visit_until(Time end) {
  ++round_;
  visit_begin_ = visited_until_, visit_end_ = end;
  const auto place = static_cast<std::size_t>(current_slice_ & (kRingSlices - 1));
  if (end < slice_end_) {
    visiting_ = ring_[place];
  } else {
    visiting_.clear();
    visiting_.swap(ring_[place]);
    ring_count_ -= static_cast<std::int64_t>(visiting_.size());
    for (const std::uint32_t port : visiting_) ports_[port].scheduled &= ~(std::uint64_t{1} << place);
  }
  for (const std::uint32_t port : visiting_) visit(port);
  update_pfc();
  visited_until_ = end;
  if (end == slice_end_) ++current_slice_, slice_end_ += slice_width_;
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::visit(std::uint32_t index) {
  Port& port = ports_[index];
  collect_arrivals(port);
  if (port.senders.empty())
    visit_switch(port);
  else
    visit_senders(port);
  while (!port.pfc_transitions.empty() && port.pfc_transitions.front().at < visit_end_) {
    port.paused = port.pfc_transitions.front().pause;
    port.pfc_transitions.pop();
  }
  reschedule(index);
}

/// Moves the arrivals before the end of this visit from the inbox to arrivals_.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::collect_arrivals(Port& port) {
  arrivals_.clear();
  std::size_t kept = 0;
  for (PacketTrain& run : port.inbox) {
    if (run.at < visit_end_) {
      if (run.last() < visit_end_) {
        arrivals_.push_back(run);
        continue;
      }
      arrivals_.push_back(take_front(run, static_cast<std::uint32_t>((visit_end_ - 1 - run.at) / run.gap + 1)));
    }
    port.inbox[kept++] = run;
  }
  port.inbox.resize(kept);
}

/// Removes and returns the first packets of a train.
template <TimeSlicedProtocol P>
auto TimeSlicedEngine<P>::take_front(PacketTrain& run, std::uint32_t count) -> PacketTrain {
  PacketTrain taken = run;
  taken.count = count;
  run.at += count * run.gap;
  run.first -= count;
  run.count -= count;
  return taken;
}

/// Schedules the next visit of a port.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::reschedule(std::uint32_t index) {
  Port& port = ports_[index];
  Time next = port.pfc_transitions.empty() ? kNever : port.pfc_transitions.front().at;
  for (const PacketTrain& run : port.inbox) next = std::min(next, run.at);
  if (!port.queue.empty() && !port.paused) next = std::min(next, std::max(port.free_at, visit_end_));
  for (const std::uint32_t slot : port.senders) next = std::min(next, next_wake(flows_[slot]));
  if (next != kNever) schedule(index, next);
}

/// Returns the first time from `at` on at which the port is not paused; kNever if that is not within this visit.
template <TimeSlicedProtocol P>
Time TimeSlicedEngine<P>::unpaused_at(Port& port, Time at) const {
  for (;;) {
    for (; !port.pfc_transitions.empty() && port.pfc_transitions.front().at <= at; port.pfc_transitions.pop())
      port.paused = port.pfc_transitions.front().pause;
    if (!port.paused) return at;
    if (port.pfc_transitions.empty() || port.pfc_transitions.front().at >= visit_end_) return kNever;
    at = port.pfc_transitions.front().at;
  }
}

}  // namespace manyworlds::core::network
