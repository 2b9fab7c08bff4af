// Of the sliced engine: links, flows, completions, and which port is visited when.
#pragma once

#include <functional>
#include <utility>

#include "core/base/error.hpp"
#include "core/network/event_driven/packet_engine_setup.hpp"
#include "core/network/time_sliced/sliced_engine.hpp"
#include "core/network/time_sliced/sliced_exchange.hpp"
#include "core/network/time_sliced/sliced_senders.hpp"
#include "core/network/time_sliced/sliced_switches.hpp"

namespace manyworlds::core::network {

template <SlicedProtocol P>
SlicedEngine<P>::SlicedEngine(const Transport& transport, const typename P::Parameters& parameters, bool marks)
    : Pinned(transport, parameters, marks), packets_(transport, parameters, marks) {}

template <SlicedProtocol P>
void SlicedEngine<P>::reset() {
  by_packets_ = false;
  now_ = quiet_since_ = control_until_ = 0;
  pausing_ = 0;
  clear_calendar();
  width_ = horizon_ = kNever;
  slice_ = 0, visited_ = 0;
  put_aside(ports_, spare_ports_);
  put_aside(flows_, spare_flows_);
  free_.clear();
  ends_.clear();
  live_ = 0;
  counters_ = {};
}

template <SlicedProtocol P>
std::uint32_t SlicedEngine<P>::add_link(const LinkSpec& spec) {
  if (!by_packets_ && too_short(spec)) use_packets();
  if (by_packets_) return packets_.add_link(spec);
  if (spec.latency_ps < width_) use_width(spec.latency_ps);
  const std::uint32_t slot = add_slot(ports_, spare_ports_);
  Port& port = ports_[slot];
  port.queue.clear(), port.inbox.clear(), port.toggles.clear(), port.changes.clear(), port.senders.clear();
  this->take_figures(port, spec);
  port.slice_bytes = (spec.latency_ps / port.full_packet_ps + 2) * packet_bytes_;  // no slice is longer than that
  port.free_at = port.waiting_bytes = port.ingress_bytes = port.mark_error = port.added = 0;
  port.listed = port.touched_in = 0;
  port.paused = port.pause_wanted = port.may_pause = false;
  return slot;
}

template <SlicedProtocol P>
std::uint32_t SlicedEngine<P>::start(const Route& route, std::int64_t bytes, std::uint64_t order) {
  if (by_packets_) return packets_.start(route, bytes, order);
  const std::uint32_t slot = take_slot();
  Flow& flow = flows_[slot];
  set_up(flow, route, order);
  this->take_size(flow, bytes);
  this->begin_sender(flow, ports_, now_);
  flow.next_packet_at = now_;
  flow.last_notice = now_ - kCnpInterval;
  offer(flow, now_);
  ports_[route[0]].senders.push_back(slot);
  list(route[0], now_);
  return slot;
}

template <SlicedProtocol P>
void SlicedEngine<P>::set_up(Flow& flow, const Route& route, std::uint64_t order) {
  static_cast<FlowState&>(flow) = FlowState{};
  flow.acks.clear();
  flow.notices.clear();
  flow.order = order;
  flow.live = true;
  this->take_path(flow, route, ports_);
  ++live_;
}

template <SlicedProtocol P>
void SlicedEngine<P>::set_order(std::uint32_t flow_slot, std::uint64_t order) {
  if (by_packets_)
    packets_.set_order(flow_slot, order);
  else
    flows_[flow_slot].order = order;
}

template <SlicedProtocol P>
void SlicedEngine<P>::run(Time limit, std::vector<std::uint32_t>& completed) {
  if (by_packets_) return packets_.run(limit, completed);
  for (;;) {
    if (!ends_.empty() && ends_.front().first < horizon_) {
      if (ends_.front().first > limit) break;
      now_ = quiet_since_ = ends_.front().first;
      while (!ends_.empty() && ends_.front().first == now_) {
        const std::uint32_t slot = pop_heap(ends_).second;
        flows_[slot].live = false;
        --live_;
        free_.push_back(slot);
        completed.push_back(slot);
      }
      return;
    }
    if (limit < horizon_) break;
    if (in_ring_ > 0) {
      visit_until(horizon_);
      take_later();
      continue;
    }
    Time to = limit;
    if (!ends_.empty()) to = std::min(to, ends_.front().first);
    if (!later_.empty()) to = std::min(to, later_.front().first * width_);
    if (to == kNever) {  // nothing will happen any more
      limit = std::max(now_, control_until_);
      if (limit >= horizon_) leap(limit);
      break;
    }
    leap(to);
    take_later();
  }
  now_ = limit;
}

// --- the calendar
// -----------------------------------------------------------------------------------------------------

template <SlicedProtocol P>
void SlicedEngine<P>::push_heap(std::vector<Timed>& heap, const Timed& what) {
  heap.push_back(what);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

template <SlicedProtocol P>
auto SlicedEngine<P>::pop_heap(std::vector<Timed>& heap) -> Timed {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const Timed first = heap.back();
  heap.pop_back();
  return first;
}

template <SlicedProtocol P>
void SlicedEngine<P>::list_in(std::uint32_t port, std::int64_t slice) {
  if (slice >= slice_ + kRing) {
    later_.emplace_back(slice, port);
    return std::push_heap(later_.begin(), later_.end(), std::greater<>());
  }
  const auto place = static_cast<std::size_t>(slice & (kRing - 1));
  const std::uint64_t bit = std::uint64_t{1} << place;
  if ((ports_[port].listed & bit) != 0) return;
  ports_[port].listed |= bit;
  ring_[place].push_back(port);
  ++in_ring_;
}

template <SlicedProtocol P>
void SlicedEngine<P>::clear_calendar() {
  for (auto& ports : ring_) ports.clear();
  for (Port& port : ports_) port.listed = 0;
  in_ring_ = 0;
  later_.clear();
}

/// Begins anew at `now`, with nothing listed.
template <SlicedProtocol P>
void SlicedEngine<P>::set_time(Time now) {
  now_ = visited_ = now;
  slice_ = width_ == kNever ? 0 : now / width_;
  horizon_ = width_ == kNever ? kNever : (slice_ + 1) * width_;
}

/// On to the slice of `to`: nothing is listed before it.
template <SlicedProtocol P>
void SlicedEngine<P>::leap(Time to) {
  slice_ = to / width_;
  visited_ = std::max(visited_, slice_ * width_);
  horizon_ = (slice_ + 1) * width_;
}

/// Into the ring what is near by now.
template <SlicedProtocol P>
void SlicedEngine<P>::take_later() {
  while (!later_.empty() && later_.front().first < slice_ + kRing) {
    std::pop_heap(later_.begin(), later_.end(), std::greater<>());
    const auto [slice, port] = later_.back();
    later_.pop_back();
    list_in(port, slice);
  }
}

/// Visits the ports that the slice at hand has anything for, from where it was left to `end`, in it or its end.
template <SlicedProtocol P>
void SlicedEngine<P>::visit_until(Time end) {
  ++round_;
  begin_ = visited_, end_ = end;
  const auto place = static_cast<std::size_t>(slice_ & (kRing - 1));
  if (end < horizon_) {
    visiting_ = ring_[place];
  } else {
    visiting_.clear();
    visiting_.swap(ring_[place]);
    in_ring_ -= static_cast<std::int64_t>(visiting_.size());
    for (const std::uint32_t port : visiting_) ports_[port].listed &= ~(std::uint64_t{1} << place);
  }
  for (const std::uint32_t port : visiting_) visit(port);
  settle_pauses();
  visited_ = end;
  if (end == horizon_) ++slice_, horizon_ += width_;
}

template <SlicedProtocol P>
void SlicedEngine<P>::visit(std::uint32_t index) {
  Port& port = ports_[index];
  take_inbox(port);
  if (port.senders.empty())
    visit_switch(port);
  else
    visit_senders(port);
  while (!port.toggles.empty() && port.toggles.front().at < end_) {
    port.paused = port.toggles.front().pause;
    port.toggles.pop();
  }
  relist(index);
}

/// What comes before the end of this visit, into `in_`.
template <SlicedProtocol P>
void SlicedEngine<P>::take_inbox(Port& port) {
  in_.clear();
  std::size_t kept = 0;
  for (Run& run : port.inbox) {
    if (run.at < end_) {
      if (run.last() < end_) {
        in_.push_back(run);
        continue;
      }
      in_.push_back(first_of(run, static_cast<std::uint32_t>((end_ - 1 - run.at) / run.gap + 1)));
    }
    port.inbox[kept++] = run;
  }
  port.inbox.resize(kept);
}

/// Takes the first packets of a run off it.
template <SlicedProtocol P>
auto SlicedEngine<P>::first_of(Run& run, std::uint32_t count) -> Run {
  Run taken = run;
  taken.count = count;
  run.at += count * run.gap;
  run.first -= count;
  run.count -= count;
  return taken;
}

/// The next visit of a port.
template <SlicedProtocol P>
void SlicedEngine<P>::relist(std::uint32_t index) {
  Port& port = ports_[index];
  Time next = port.toggles.empty() ? kNever : port.toggles.front().at;
  for (const Run& run : port.inbox) next = std::min(next, run.at);
  if (!port.queue.empty() && !port.paused) next = std::min(next, std::max(port.free_at, end_));
  for (const std::uint32_t slot : port.senders) next = std::min(next, wake_of(flows_[slot]));
  if (next != kNever) list(index, next);
}

/// From `at` on, in this visit: when the port is not paused; kNever if that is later.
template <SlicedProtocol P>
Time SlicedEngine<P>::clear_from(Port& port, Time at) const {
  for (;;) {
    for (; !port.toggles.empty() && port.toggles.front().at <= at; port.toggles.pop())
      port.paused = port.toggles.front().pause;
    if (!port.paused) return at;
    if (port.toggles.empty() || port.toggles.front().at >= end_) return kNever;
    at = port.toggles.front().at;
  }
}

}  // namespace manyworlds::core::network
