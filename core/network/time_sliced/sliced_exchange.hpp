// The state of a sliced engine poured into a packet engine and back: for saved words, which only the packet engine
// reads and writes, and for slices of another width.
#pragma once

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "core/base/error.hpp"
#include "core/network/event_driven/state_load.hpp"
#include "core/network/time_sliced/sliced_engine.hpp"

namespace manyworlds::core::network {

template <Protocol P>
class SlicedExchange {
  using Slices = SlicedEngine<P>;
  using Packets = PacketEngine<P>;
  using Run = typename Slices::Run;

 public:
  /// `from` at its now(), with nothing done yet that happens then; `to` has the same slots and goes through the first
  /// half of that instant.
  static void pour(const Slices& from, Packets& to) {
    to.reset();
    to.now_ = from.now_;
    to.quiet_since_ = from.quiet_since();
    to.counters_ = from.counters_;
    for (const auto& port : from.ports_) to.add_link(port.spec);
    for (const auto& flow : from.flows_) pour_flow(from, flow, to);
    for (std::uint32_t link = 0; link < from.ports_.size(); ++link) pour_port(from.ports_[link], link, to);
    pour_wires(from, to);
    for (std::uint32_t slot = 0; slot < from.flows_.size(); ++slot) {
      const auto& flow = from.flows_[slot];
      if (!flow.live) {
        to.free_.push_back(slot);
        continue;
      }
      Loader<P>::wake(to, slot);
      for (std::size_t i = 0; i < flow.notices.size(); ++i) to.push(flow.notices[i], Kind::notice, to.name_of(slot));
    }
    for (std::uint32_t link = 0; link < from.ports_.size(); ++link) Loader<P>::go_on(to, link);
    std::vector<std::uint32_t> completed;
    to.run(from.now_, completed);
    MANYWORLDS_CHECK(completed.empty(), "{} flows were over at {}", completed.size(), from.now_);
    to.catch_up();
  }

  /// Links and flows of `from`, which is at the same instant, under other slots.
  static void take(const Packets& from, Slices& to, const std::vector<std::uint32_t>& flows,
                   const std::vector<std::uint32_t>& links) {
    for (std::uint32_t i = 0; i < flows.size(); ++i)
      if (from.flows_[i].live) take_flow(from.flows_[i], to, flows[i], links);
    for (std::uint32_t i = 0; i < links.size(); ++i) take_port(from.ports_[i], to, links[i], flows);
    for (std::uint32_t i = 0; i < links.size(); ++i) {
      const auto& wire = from.ports_[i].wire;
      for (std::size_t at = 0; at < wire.size(); ++at) {
        Run run = run_of(wire[at].packet, flows);
        run.at = wire[at].at;
        add(to.ports_[to.flows_[run.slot].path[run.hop]].inbox, run);
      }
    }
    take_events(from, to, flows, links);
    for (const std::uint32_t link : links) {
      const auto& port = to.ports_[link];
      if (!port.inbox.empty() || !port.queue.empty() || !port.toggles.empty() || !port.senders.empty())
        to.list(link, to.now_);
    }
  }

  static std::vector<LinkSpec> specs_of(const Packets& of) {
    std::vector<LinkSpec> specs;
    for (const auto& port : of.ports_) specs.push_back(port.spec);
    return specs;
  }

  /// One after another, joined where they follow each other.
  template <class Runs>
  static void add(Runs& to, const Run& run) {
    if (!to.empty()) {
      Run& last = to.back();
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

  /// The same where times mean nothing any more.
  static void add_waiting(Fifo<Run>& to, const Run& run) {
    if (!to.empty()) {
      Run& last = to.back();
      if (last.slot == run.slot && last.first == run.first + last.count && run.first > 1 && last.marked == run.marked &&
          last.hop == run.hop) {
        last.count += run.count;
        return;
      }
    }
    to.push(run);
  }

 private:
  static void pour_flow(const Slices& from, const typename Slices::Flow& flow, Packets& to) {
    const std::uint32_t slot = to.take_slot();
    auto& made = to.flows_[slot];
    made.live = false;
    if (!flow.live) return;
    to.set_up(made, Route(flow.path.begin(), flow.path.begin() + flow.hops), flow.order);
    made.left = flow.left;
    made.unacked = flow.unacked;
    made.last_bytes = flow.last_bytes;
    made.next_packet_at = flow.next_packet_at;
    made.departs_at = flow.departs_at;
    made.delivered_at = flow.delivered_at;
    made.last_notice = flow.last_notice;
    made.at_nic = flow.at_nic;
    made.counts_acks = flow.counts_acks;
    made.offered = flow.offered_at != kNever;
    made.sender = flow.sender;
    if (made.left > 0 || made.offered) ++to.ports_[made.path[0]].senders;
    for (std::size_t i = 0; i < flow.acks.size(); ++i)
      for (std::uint32_t j = 0; j < flow.acks[i].count; ++j)
        if (const Time at = flow.acks[i].at + j * flow.acks[i].gap; at < from.now_)
          --made.unacked;
        else
          made.acks.push({at, 0, false});
  }

  static void pour_port(const typename Slices::Port& port, std::uint32_t link, Packets& to) {
    auto& made = to.ports_[link];
    made.paused = port.paused;
    made.pause_wanted = port.pause_wanted;
    to.pending_control_ += port.pause_wanted ? 2 : 0;
    if (port.pause_wanted)
      for (const std::uint32_t onward : made.onward) ++to.ports_[onward].pressed;
    made.busy_until = port.free_at;
    made.mark_error = port.queue.empty() ? 0 : port.mark_error;
    for (std::size_t i = 0; i < port.queue.size(); ++i)
      for (std::uint32_t j = 0; j < port.queue[i].count; ++j) made.queue.push(packet_of(port.queue[i], j));
    for (std::size_t i = 0; i < port.toggles.size(); ++i) {
      to.push(port.toggles[i].at, port.toggles[i].pause ? Kind::pause : Kind::resume, link);
      to.pending_control_ += port.toggles[i].pause ? 0 : 2;
    }
  }

  static void pour_wires(const Slices& from, Packets& to) {
    std::vector<std::tuple<std::uint32_t, Time, Packet>> travelling;
    for (const auto& port : from.ports_)
      for (const Run& run : port.inbox)
        for (std::uint32_t j = 0; j < run.count; ++j)
          travelling.emplace_back(from.flows_[run.slot].path[run.hop - 1u], run.at + j * run.gap, packet_of(run, j));
    std::sort(travelling.begin(), travelling.end());
    for (const auto& [link, at, packet] : travelling) to.ports_[link].wire.push({at, packet});
  }

  static Packet packet_of(const Run& run, std::uint32_t index) {
    return make_packet(run.slot, run.first - index) + run.hop * kOneHop + (run.marked ? kMark : 0);
  }

  static void take_flow(const typename Packets::Flow& flow, Slices& to, std::uint32_t slot,
                        const std::vector<std::uint32_t>& links) {
    Route route;
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) route.push_back(links[flow.path[hop]]);
    auto& made = to.flows_[slot];
    to.set_up(made, route, flow.order);
    made.left = flow.left;
    made.unacked = flow.unacked;
    made.last_bytes = flow.last_bytes;
    made.next_packet_at = flow.next_packet_at;
    made.offered_at = flow.offered ? to.now_ : kNever;
    made.departs_at = flow.departs_at;
    made.delivered_at = flow.delivered_at;
    made.last_notice = flow.last_notice;
    made.at_nic = flow.at_nic;
    made.blocked = flow.blocked;
    made.counts_acks = flow.counts_acks;
    made.sender = flow.sender;
    for (std::size_t i = 0; i < flow.acks.size(); ++i) to.add_ack(made, {flow.acks[i].at, 0, 1});
    if (flow.left > 0 || flow.at_nic) to.ports_[route[0]].senders.push_back(slot);
    if (flow.delivered_at != kNever) Slices::push_heap(to.ends_, {flow.delivered_at, slot});
  }

  static void take_port(const typename Packets::Port& port, Slices& to, std::uint32_t link,
                        const std::vector<std::uint32_t>& flows) {
    auto& made = to.ports_[link];
    made.paused = port.paused;
    made.pause_wanted = port.pause_wanted;
    to.pausing_ += port.pause_wanted;
    made.free_at = port.busy_until;
    made.waiting_bytes = port.waiting_bytes;
    made.ingress_bytes = port.ingress_bytes;
    made.mark_error = port.mark_error;
    for (std::size_t i = 0; i < port.queue.size(); ++i) add_waiting(made.queue, run_of(port.queue[i], flows));
  }

  static Run run_of(Packet packet, const std::vector<std::uint32_t>& flows) {
    Run run;
    run.slot = flows[slot_of(packet)];
    run.first = number_of(packet);
    run.count = 1;
    run.hop = static_cast<std::uint16_t>(hop_of(packet));
    run.marked = (packet & kMark) != 0;
    return run;
  }

  static void take_events(const Packets& from, Slices& to, const std::vector<std::uint32_t>& flows,
                          const std::vector<std::uint32_t>& links) {
    std::vector<std::tuple<Time, Kind, std::uint32_t>> events;  // a resume before a pause, as they happen
    from.events_.for_each([&](const Event& event) {
      const Kind kind = Packets::kind_of(event);
      const auto index = static_cast<std::uint32_t>(event.of());
      if (kind == Kind::notice) {
        const auto& flow = from.flows_[index];
        if (flow.live && flow.life == event.of() >> 32 && flow.left > 0) events.emplace_back(event.at, kind, index);
      } else if (kind == Kind::pause || kind == Kind::resume) {
        events.emplace_back(event.at, kind, index);
      }
    });
    std::sort(events.begin(), events.end());
    for (const auto& [at, kind, index] : events) {
      if (kind == Kind::notice) {
        to.flows_[flows[index]].notices.push(at);
      } else {
        to.ports_[links[index]].toggles.push({at, kind == Kind::pause});
        to.control_until_ = std::max(to.control_until_, at);
      }
    }
  }
};

template <SlicedProtocol P>
void SlicedEngine<P>::settle(PacketEngine<P>& through) {
  if (visited_ < now_) visit_until(now_);
  SlicedExchange<P>::pour(*this, through);
}

/// What settle() left in a packet engine, as the state of this one.
template <SlicedProtocol P>
void SlicedEngine<P>::take_back(const PacketEngine<P>& from) {
  for (Port& port : ports_) port.queue.clear(), port.inbox.clear(), port.toggles.clear(), port.senders.clear();
  clear_calendar();
  set_time(now_);
  ends_.clear();
  live_ = 0;
  pausing_ = 0;
  quiet_since_ = from.quiet_since();
  counters_ = from.counters();
  std::vector<std::uint32_t> flows(flows_.size()), links(ports_.size());
  std::iota(flows.begin(), flows.end(), 0u);
  std::iota(links.begin(), links.end(), 0u);
  SlicedExchange<P>::take(from, *this, flows, links);
}

template <SlicedProtocol P>
void SlicedEngine<P>::use_width(Time width) {
  if (live_ == 0 && idle()) {
    width_ = width;
    return set_time(now_);
  }
  PacketEngine<P> between(transport_, parameters_, marks_);
  settle(between);
  width_ = width;
  take_back(between);
}

template <SlicedProtocol P>
void SlicedEngine<P>::use_packets() {
  settle(packets_);
  by_packets_ = true;
}

template <SlicedProtocol P>
PauseWaits SlicedEngine<P>::standstill() const {
  if (by_packets_) return packets_.standstill();
  if (live_ == 0 || !idle() || !ends_.empty()) return {};
  PacketEngine<P> through(transport_, parameters_, marks_);
  SlicedExchange<P>::pour(*this, through);
  return through.standstill();
}

template <SlicedProtocol P>
std::vector<SavedPart> SlicedEngine<P>::save() {
  if (by_packets_) return packets_.save();
  settle(packets_);
  take_back(packets_);
  return packets_.save();
}

template <SlicedProtocol P>
void SlicedEngine<P>::load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> orders,
                           std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) {
  if (by_packets_) return packets_.load(words, orders, flow_slots, link_slots);
  PacketEngine<P>& loaded = packets_;
  loaded.reset();
  std::vector<std::uint32_t> none;
  loaded.run(now_, none);
  loaded.load(words, orders, flow_slots, link_slots);
  const std::vector<LinkSpec> specs = SlicedExchange<P>::specs_of(loaded);  // by slot, which is number
  if (std::any_of(specs.begin(), specs.end(), [&](const LinkSpec& spec) { return too_short(spec); })) {
    use_packets();
    return packets_.load(words, orders, flow_slots, link_slots);
  }
  Time width = width_;
  for (const LinkSpec& spec : specs) width = std::min(width, spec.latency_ps);
  if (width < width_) use_width(width);
  for (std::uint32_t& link : link_slots) link = add_link(specs[link]);
  for (std::uint32_t& slot : flow_slots) slot = take_slot();
  SlicedExchange<P>::take(loaded, *this, flow_slots, link_slots);
}

}  // namespace manyworlds::core::network
