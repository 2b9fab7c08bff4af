// Loads canonical words into a packet engine.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/network/event_driven/state_words.hpp"

namespace manyworlds::core::network {

/// Reads one flow component. Exists for the duration of one load().
template <SenderProtocol P>
class Loader {
  using Engine = PacketEngine<P>;
  using Flow = typename Engine::Flow;
  using Port = typename Engine::Port;

 public:
  Loader(Engine& engine, std::span<const std::uint64_t> words, std::span<const std::uint64_t> tie_orders,
         std::vector<std::uint32_t>& flows, std::vector<std::uint32_t>& links)
      : engine_(engine), words_(words), tie_orders_(tie_orders), flows_(flows), links_(links) {}

  void run() {
    const std::uint64_t links = next(), flows = next();
    MANYWORLDS_CHECK(flows == tie_orders_.size(), "{} flows, {} orders", flows, tie_orders_.size());
    flows_.clear();
    links_.clear();
    for (std::uint64_t i = 0; i < flows; ++i) flows_.push_back(engine_.acquire_slot());
    for (std::uint64_t i = 0; i < links; ++i) read_link();
    for (std::uint64_t i = 0; i < flows; ++i) read_flow(flows_[i], tie_orders_[i]);
    for (std::uint64_t remaining = next(); remaining > 0; --remaining) read_event();
    for (const std::uint32_t link : links_) restore_link(engine_, link);
  }

  // Schedules the events of a flow, which follow from its state.
  static void restore_flow_events(Engine& engine, std::uint32_t slot) {
    Flow& flow = engine.flows_[slot];
    if (flow.offered) engine.push(engine.now_, EventKind::arrive, slot);
    if (flow.departs_at != kNever) engine.push(flow.departs_at, EventKind::departed, engine.flow_handle(slot));
    if (flow.delivered_at != kNever) engine.push(flow.delivered_at, EventKind::deliver, engine.flow_handle(slot));
    if (flow.remaining == 0) return;
    if (flow.uses_cc) engine.arm_timer(flow, slot);
    if (flow.at_nic) return;
    // A flow that has packets left and none at the NIC waits for its window or for pacing.
    flow.blocked = flow.counts_acks && !engine.fits_window(flow);
    if (!flow.blocked)
      engine.push(flow.next_packet_at, EventKind::timer, engine.flow_handle(slot));
    else if (!flow.acks.empty())
      engine.push(flow.acks.front().at, EventKind::ack, engine.flow_handle(slot));
  }

  // Restores the byte counts of a link's queue and of the ingress links, and its events, from the queued packets.
  static void restore_link(Engine& engine, std::uint32_t link) {
    Port& port = engine.ports_[link];
    for (std::size_t i = 0; i < port.queue.size(); ++i) {
      const Packet packet = port.queue[i];
      const Flow& flow = engine.flows_[slot_of(packet)];
      const std::int64_t size = engine.size_of(flow, packet);
      port.waiting_bytes += size;
      if (const std::uint32_t hop = hop_of(packet); hop > 0) engine.ports_[flow.path[hop - 1]].ingress_bytes += size;
    }
    if (!port.wire.empty()) engine.schedule_arrival(link, port.wire.front());
    if (port.queue.empty() || port.paused) return;
    engine.schedule_service(port, link);
  }

  // Visitor interface of visit_sender_state().
  template <class Value>
  void scalar(Value& value) {
    value = static_cast<Value>(next());
  }
  void deadline(Time& at) {
    at = next_signed();
    if (at != kNever) at += engine_.now_;
  }
  void future_time(Time& at) { at = engine_.now_ + next_signed(); }
  void age(Time& at, Time) { at = engine_.now_ - next_signed(); }
  void link_bytes(std::int64_t& bytes, std::uint32_t hop) {
    bytes = engine_.ports_[flow_->path[hop]].sent_bytes - next_signed();
  }

 private:
  std::uint64_t next() {
    MANYWORLDS_CHECK(position_ < words_.size(), "state of {} words is cut short", words_.size());
    return words_[position_++];
  }
  std::int64_t next_signed() { return static_cast<std::int64_t>(next()); }
  Packet with_engine_slot(Packet packet) const {
    return make_packet(flows_[slot_of(packet)], 0) | (packet & kAllButSlotMask);
  }

  void read_link() {
    LinkSpec spec;
    spec.bits_per_second = next_signed();
    spec.latency_ps = next_signed();
    const std::uint64_t flags = next();
    spec.leaves_gpu = (flags & kLeavesGpu) != 0;
    spec.enters_gpu = (flags & kEntersGpu) != 0;
    spec.scale_up = (flags & kScaleUp) != 0;
    links_.push_back(engine_.add_link(spec));
    Port& port = engine_.ports_.back();
    port.paused = (flags & kPaused) != 0;
    port.pause_wanted = (flags & kPauseWanted) != 0;
    engine_.pending_pfc_ += port.pause_wanted ? 2 : 0;
    future_time(port.busy_until);
    port.mark_error = next_signed();
    for (std::uint64_t remaining = next(); remaining > 0; --remaining) port.queue.push(with_engine_slot(next()));
    for (std::uint64_t remaining = next(); remaining > 0; --remaining) {
      Time at = 0;
      deadline(at);
      port.wire.push({at, with_engine_slot(next())});
    }
  }

  void read_flow(std::uint32_t slot, std::uint64_t tie_order) {
    route_.resize(next());
    for (std::uint32_t& link : route_) link = links_[next()];
    Flow& flow = engine_.flows_[slot];
    engine_.set_up(flow, route_, tie_order);
    flow_ = &flow;
    flow.remaining = static_cast<std::uint32_t>(next());
    const std::uint64_t flags = next();
    flow.at_nic = (flags & kAtNic) != 0;
    flow.offered = (flags & kOffered) != 0;
    if (flow.remaining > 0 || flow.offered) ++engine_.ports_[route_[0]].senders;
    flow.last_bytes = next_signed();
    deadline(flow.departs_at), deadline(flow.delivered_at);
    engine_.start_sender(flow);
    const bool protocol_counts = flow.uses_cc && flow.remaining > 0;
    if (protocol_counts) visit_sender_state<P>(flow, *this);
    flow.unacked = static_cast<std::uint32_t>(next());
    read_acks(flow);
    if (P::kNeeds.acks && protocol_counts) {
      for (std::uint64_t remaining = next(); remaining > 0; --remaining) {
        Time departed = 0;
        deadline(departed);
        flow.departures.push(departed);
      }
      if constexpr (P::kNeeds.telemetry) read_telemetry(flow);
    }
    restore_flow_events(engine_, slot);
  }

  void read_acks(Flow& flow) {
    for (std::uint64_t remaining = next(); remaining > 0; --remaining) {
      typename Engine::Ack ack{};
      deadline(ack.at);
      if (P::kNeeds.acks && flow.uses_cc) ack.rtt = next_signed(), ack.marked = next() != 0;
      flow.acks.push(ack);
    }
  }

  void read_telemetry(Flow& flow) {
    for (std::uint64_t remaining = next(); remaining > 0; --remaining) {
      TelemetryRecord* row = flow.telemetry.push();
      for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
        if (next() == 0) continue;
        TelemetryRecord& link = row[hop - 1];
        deadline(link.at);
        link.waiting_bytes = next_signed();
        link_bytes(link.sent_bytes, hop);
      }
    }
  }

  void read_event() {
    const Time at = engine_.now_ + next_signed();
    const auto kind = static_cast<EventKind>(next());
    const auto index = static_cast<std::uint32_t>(next());
    if (kind == EventKind::cnp) {
      engine_.push(at, kind, engine_.flow_handle(flows_[index]));
    } else {
      engine_.push(at, kind, links_[index]);
      engine_.pending_pfc_ += kind == EventKind::resume ? 2 : 0;
    }
  }

  Engine& engine_;
  std::span<const std::uint64_t> words_;
  std::span<const std::uint64_t> tie_orders_;
  std::vector<std::uint32_t>& flows_;
  std::vector<std::uint32_t>& links_;
  std::size_t position_ = 0;
  Route route_;
  Flow* flow_ = nullptr;
};

}  // namespace manyworlds::core::network
