// Conversion of the state of a time-sliced engine into that of a packet engine and back: for saved words, which only
// the packet engine reads and writes, and for a change of the slice width.
#pragma once

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "core/base/error.hpp"
#include "core/network/event_driven/state_load.hpp"
#include "core/network/time_sliced/time_sliced_engine.hpp"

namespace manyworlds::core::network {

template <SenderProtocol P>
class TimeSlicedExchange {
  using TimeSliced = TimeSlicedEngine<P>;
  using EventDriven = PacketEngine<P>;
  using PacketTrain = typename TimeSliced::PacketTrain;

 public:
  /// Copies the state of `from`, which has handled no event at its now(), to `to`, with the same slots. Then `to`
  /// handles the first phase of that instant.
  static void export_state(const TimeSliced& from, EventDriven& to) {
    to.reset();
    to.now_ = from.now_;
    to.last_activity_ = from.last_activity();
    to.counters_ = from.counters_;
    for (const auto& port : from.ports_) to.add_link(port.spec);
    for (const auto& flow : from.flows_) export_flow(from, flow, to);
    for (std::uint32_t link = 0; link < from.ports_.size(); ++link) export_port(from.ports_[link], link, to);
    export_wires(from, to);
    for (std::uint32_t slot = 0; slot < from.flows_.size(); ++slot) {
      const auto& flow = from.flows_[slot];
      if (!flow.live) {
        to.free_.push_back(slot);
        continue;
      }
      Loader<P>::restore_flow_events(to, slot);
      for (std::size_t i = 0; i < flow.cnps.size(); ++i) to.push(flow.cnps[i], EventKind::cnp, to.flow_handle(slot));
    }
    for (std::uint32_t link = 0; link < from.ports_.size(); ++link) Loader<P>::restore_link(to, link);
    std::vector<std::uint32_t> completed;
    to.run(from.now_, completed);
    MANYWORLDS_CHECK(completed.empty(), "{} flows were over at {}", completed.size(), from.now_);
    to.catch_up();
  }

  /// Copies the links and flows of `from`, which is at the same instant, to `to`. Link i becomes links[i], and flow i
  /// becomes flows[i].
  static void import_state(const EventDriven& from, TimeSliced& to, const std::vector<std::uint32_t>& flows,
                           const std::vector<std::uint32_t>& links) {
    for (std::uint32_t i = 0; i < flows.size(); ++i)
      if (from.flows_[i].live) import_flow(from.flows_[i], to, flows[i], links);
    for (std::uint32_t i = 0; i < links.size(); ++i) import_port(from.ports_[i], to, links[i], flows);
    for (std::uint32_t i = 0; i < links.size(); ++i) {
      const auto& wire = from.ports_[i].wire;
      for (std::size_t at = 0; at < wire.size(); ++at) {
        PacketTrain run = train_of(wire[at].packet, flows);
        run.at = wire[at].at;
        append_train(to.ports_[to.flows_[run.slot].path[run.hop]].inbox, run);
      }
    }
    import_events(from, to, flows, links);
    for (const std::uint32_t link : links) {
      const auto& port = to.ports_[link];
      if (!port.inbox.empty() || !port.queue.empty() || !port.pfc_transitions.empty() || !port.senders.empty())
        to.schedule(link, to.now_);
    }
  }

  static std::vector<LinkSpec> specs_of(const EventDriven& subject) {
    std::vector<LinkSpec> specs;
    for (const auto& port : subject.ports_) specs.push_back(port.spec);
    return specs;
  }

  /// Appends a train, merged with the previous one if it continues it.
  template <class Trains>
  static void append_train(Trains& to, const PacketTrain& run) {
    if (!to.empty()) {
      PacketTrain& last = to.back();
      if (last.slot == run.slot && last.first == run.first + last.count && run.first > 1 && last.marked == run.marked &&
          last.hop == run.hop) {
        const Time gap = last.count > 1 ? last.gap : run.at - last.at;
        if (run.at == last.at + last.count * gap && (run.count == 1 || run.gap == gap)) {
          last.gap = gap;
          last.count += run.count;
          return;
        }
      }
    }
    to.push_back(run);
  }

  /// Appends a train to a queue, where times do not matter.
  static void append_waiting(Fifo<PacketTrain>& to, const PacketTrain& run) {
    if (!to.empty()) {
      PacketTrain& last = to.back();
      if (last.slot == run.slot && last.first == run.first + last.count && run.first > 1 && last.marked == run.marked &&
          last.hop == run.hop) {
        last.count += run.count;
        return;
      }
    }
    to.push(run);
  }

 private:
  static void export_flow(const TimeSliced& from, const typename TimeSliced::Flow& flow, EventDriven& to) {
    const std::uint32_t slot = to.acquire_slot();
    auto& result = to.flows_[slot];
    result.live = false;
    if (!flow.live) return;
    to.set_up(result, Route(flow.path.begin(), flow.path.begin() + flow.hops), flow.tie_order);
    result.remaining = flow.remaining;
    result.unacked = flow.unacked;
    result.last_bytes = flow.last_bytes;
    result.next_packet_at = flow.next_packet_at;
    result.departs_at = flow.departs_at;
    result.delivered_at = flow.delivered_at;
    result.last_cnp = flow.last_cnp;
    result.at_nic = flow.at_nic;
    result.counts_acks = flow.counts_acks;
    result.offered = flow.offered_at != kNever;
    result.sender = flow.sender;
    if (result.remaining > 0 || result.offered) ++to.ports_[result.path[0]].senders;
    for (std::size_t i = 0; i < flow.acks.size(); ++i)
      for (std::uint32_t j = 0; j < flow.acks[i].count; ++j)
        if (const Time at = flow.acks[i].at + j * flow.acks[i].gap; at < from.now_)
          --result.unacked;
        else
          result.acks.push({at, 0, false});
  }

  static void export_port(const typename TimeSliced::Port& port, std::uint32_t link, EventDriven& to) {
    auto& result = to.ports_[link];
    result.paused = port.paused;
    result.pause_wanted = port.pause_wanted;
    to.pending_pfc_ += port.pause_wanted ? 2 : 0;
    if (port.pause_wanted)
      for (const std::uint32_t downstream : result.downstream) ++to.ports_[downstream].over_xoff;
    result.busy_until = port.free_at;
    result.mark_error = port.queue.empty() ? 0 : port.mark_error;
    for (std::size_t i = 0; i < port.queue.size(); ++i)
      for (std::uint32_t j = 0; j < port.queue[i].count; ++j) result.queue.push(packet_of(port.queue[i], j));
    for (std::size_t i = 0; i < port.pfc_transitions.size(); ++i) {
      to.push(port.pfc_transitions[i].at, port.pfc_transitions[i].pause ? EventKind::pause : EventKind::resume, link);
      to.pending_pfc_ += port.pfc_transitions[i].pause ? 0 : 2;
    }
  }

  static void export_wires(const TimeSliced& from, EventDriven& to) {
    std::vector<std::tuple<std::uint32_t, Time, Packet>> in_flight;
    for (const auto& port : from.ports_)
      for (const PacketTrain& run : port.inbox)
        for (std::uint32_t j = 0; j < run.count; ++j)
          in_flight.emplace_back(from.flows_[run.slot].path[run.hop - 1u], run.at + j * run.gap, packet_of(run, j));
    std::sort(in_flight.begin(), in_flight.end());
    for (const auto& [link, at, packet] : in_flight) to.ports_[link].wire.push({at, packet});
  }

  static Packet packet_of(const PacketTrain& run, std::uint32_t index) {
    return make_packet(run.slot, run.first - index) + run.hop * kOneHop + (run.marked ? kMarkBit : 0);
  }

  static void import_flow(const typename EventDriven::Flow& flow, TimeSliced& to, std::uint32_t slot,
                          const std::vector<std::uint32_t>& links) {
    Route route;
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) route.push_back(links[flow.path[hop]]);
    auto& result = to.flows_[slot];
    to.set_up(result, route, flow.tie_order);
    result.remaining = flow.remaining;
    result.unacked = flow.unacked;
    result.last_bytes = flow.last_bytes;
    result.next_packet_at = flow.next_packet_at;
    result.offered_at = flow.offered ? to.now_ : kNever;
    result.departs_at = flow.departs_at;
    result.delivered_at = flow.delivered_at;
    result.last_cnp = flow.last_cnp;
    result.at_nic = flow.at_nic;
    result.blocked = flow.blocked;
    result.counts_acks = flow.counts_acks;
    result.sender = flow.sender;
    for (std::size_t i = 0; i < flow.acks.size(); ++i) to.add_ack(result, {flow.acks[i].at, 0, 1});
    if (flow.remaining > 0 || flow.at_nic) to.ports_[route[0]].senders.push_back(slot);
    if (flow.delivered_at != kNever) TimeSliced::push_heap(to.completions_, {flow.delivered_at, slot});
  }

  static void import_port(const typename EventDriven::Port& port, TimeSliced& to, std::uint32_t link,
                          const std::vector<std::uint32_t>& flows) {
    auto& result = to.ports_[link];
    result.paused = port.paused;
    result.pause_wanted = port.pause_wanted;
    to.pausing_ingresses_ += port.pause_wanted;
    result.free_at = port.busy_until;
    result.waiting_bytes = port.waiting_bytes;
    result.ingress_bytes = port.ingress_bytes;
    result.mark_error = port.mark_error;
    for (std::size_t i = 0; i < port.queue.size(); ++i) append_waiting(result.queue, train_of(port.queue[i], flows));
  }

  static PacketTrain train_of(Packet packet, const std::vector<std::uint32_t>& flows) {
    PacketTrain run;
    run.slot = flows[slot_of(packet)];
    run.first = number_of(packet);
    run.count = 1;
    run.hop = static_cast<std::uint16_t>(hop_of(packet));
    run.marked = (packet & kMarkBit) != 0;
    return run;
  }

  static void import_events(const EventDriven& from, TimeSliced& to, const std::vector<std::uint32_t>& flows,
                            const std::vector<std::uint32_t>& links) {
    std::vector<std::tuple<Time, EventKind, std::uint32_t>> events;  // a resume sorts before a pause, as in EventKind
    from.events_.for_each([&](const Event& event) {
      const EventKind kind = EventDriven::kind_of(event);
      const auto index = static_cast<std::uint32_t>(event.subject());
      if (kind == EventKind::cnp) {
        const auto& flow = from.flows_[index];
        if (flow.live && flow.generation == event.subject() >> 32 && flow.remaining > 0)
          events.emplace_back(event.at, kind, index);
      } else if (kind == EventKind::pause || kind == EventKind::resume) {
        events.emplace_back(event.at, kind, index);
      }
    });
    std::sort(events.begin(), events.end());
    for (const auto& [at, kind, index] : events) {
      if (kind == EventKind::cnp) {
        to.flows_[flows[index]].cnps.push(at);
      } else {
        to.ports_[links[index]].pfc_transitions.push({at, kind == EventKind::pause});
        to.pfc_until_ = std::max(to.pfc_until_, at);
      }
    }
  }
};

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::export_state(PacketEngine<P>& snapshot) {
  if (visited_until_ < now_) visit_until(now_);
  TimeSlicedExchange<P>::export_state(*this, snapshot);
}

/// Replaces the state by that of a packet engine which export_state() has filled.
template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::import_state(const PacketEngine<P>& from) {
  for (Port& port : ports_) port.queue.clear(), port.inbox.clear(), port.pfc_transitions.clear(), port.senders.clear();
  clear_calendar();
  set_time(now_);
  completions_.clear();
  live_ = 0;
  pausing_ingresses_ = 0;
  last_activity_ = from.last_activity();
  counters_ = from.counters();
  std::vector<std::uint32_t> flows(flows_.size()), links(ports_.size());
  std::iota(flows.begin(), flows.end(), 0u);
  std::iota(links.begin(), links.end(), 0u);
  TimeSlicedExchange<P>::import_state(from, *this, flows, links);
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::set_slice_width(Time width) {
  if (live_ == 0 && idle()) {
    slice_width_ = width;
    return set_time(now_);
  }
  PacketEngine<P> snapshot(transport_, parameters_, ecn_enabled_);
  export_state(snapshot);
  slice_width_ = width;
  import_state(snapshot);
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::switch_to_event_driven() {
  export_state(event_driven_);
  delegates_ = true;
}

template <TimeSlicedProtocol P>
PauseDependencies TimeSlicedEngine<P>::deadlock() const {
  if (delegates_) return event_driven_.deadlock();
  if (live_ == 0 || !idle() || !completions_.empty()) return {};
  PacketEngine<P> snapshot(transport_, parameters_, ecn_enabled_);
  TimeSlicedExchange<P>::export_state(*this, snapshot);
  return snapshot.deadlock();
}

template <TimeSlicedProtocol P>
std::vector<ComponentState> TimeSlicedEngine<P>::save() {
  if (delegates_) return event_driven_.save();
  export_state(event_driven_);
  import_state(event_driven_);
  return event_driven_.save();
}

template <TimeSlicedProtocol P>
void TimeSlicedEngine<P>::load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> tie_orders,
                               std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) {
  if (delegates_) return event_driven_.load(words, tie_orders, flow_slots, link_slots);
  PacketEngine<P>& loaded = event_driven_;
  loaded.reset();
  std::vector<std::uint32_t> completed;
  loaded.run(now_, completed);
  loaded.load(words, tie_orders, flow_slots, link_slots);
  const std::vector<LinkSpec> specs = TimeSlicedExchange<P>::specs_of(loaded);  // by slot, which equals the link number
  if (std::any_of(specs.begin(), specs.end(), [&](const LinkSpec& spec) { return latency_too_short(spec); })) {
    switch_to_event_driven();
    return event_driven_.load(words, tie_orders, flow_slots, link_slots);
  }
  Time width = slice_width_;
  for (const LinkSpec& spec : specs) width = std::min(width, spec.latency_ps);
  if (width < slice_width_) set_slice_width(width);
  for (std::uint32_t& link : link_slots) link = add_link(specs[link]);
  for (std::uint32_t& slot : flow_slots) slot = acquire_slot();
  TimeSlicedExchange<P>::import_state(loaded, *this, flow_slots, link_slots);
}

}  // namespace manyworlds::core::network
