// From canonical words into an engine.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/network/event_driven/state_words.hpp"

namespace manyworlds::core::network {

/// Lives for one load().
template <Protocol P>
class Loader {
  using Engine = PacketEngine<P>;
  using Flow = typename Engine::Flow;
  using Port = typename Engine::Port;

 public:
  Loader(Engine& engine, std::span<const std::uint64_t> words, std::span<const std::uint64_t> orders,
         std::vector<std::uint32_t>& flows, std::vector<std::uint32_t>& links)
      : engine_(engine), words_(words), orders_(orders), flows_(flows), links_(links) {}

  void run() {
    const std::uint64_t links = next(), flows = next();
    MANYWORLDS_CHECK(flows == orders_.size(), "{} flows, {} orders", flows, orders_.size());
    flows_.clear();
    links_.clear();
    for (std::uint64_t i = 0; i < flows; ++i) flows_.push_back(engine_.take_slot());
    for (std::uint64_t i = 0; i < links; ++i) read_link();
    for (std::uint64_t i = 0; i < flows; ++i) read_flow(flows_[i], orders_[i]);
    for (std::uint64_t left = next(); left > 0; --left) read_event();
    for (const std::uint32_t link : links_) go_on(engine_, link);
  }

  // The events of a flow follow from what it says of itself.
  static void wake(Engine& engine, std::uint32_t slot) {
    Flow& flow = engine.flows_[slot];
    if (flow.offered) engine.push(engine.now_, Kind::arrive, slot);
    if (flow.departs_at != kNever) engine.push(flow.departs_at, Kind::departed, engine.name_of(slot));
    if (flow.delivered_at != kNever) engine.push(flow.delivered_at, Kind::deliver, engine.name_of(slot));
    if (flow.left == 0) return;
    if (flow.managed) engine.arm(flow, slot);
    if (flow.at_nic) return;
    // A flow that has packets left and offers none waits for its window or for its pace.
    flow.blocked = flow.counts_acks && !engine.fits(flow);
    if (!flow.blocked)
      engine.push(flow.next_packet_at, Kind::timer, engine.name_of(slot));
    else if (!flow.acks.empty())
      engine.push(flow.acks.front().at, Kind::ack, engine.name_of(slot));
  }

  // What a link's queue and a switch's ingress hold follows from the packets in the queues, and its events from them.
  static void go_on(Engine& engine, std::uint32_t link) {
    Port& port = engine.ports_[link];
    for (std::size_t i = 0; i < port.queue.size(); ++i) {
      const Packet packet = port.queue[i];
      const Flow& flow = engine.flows_[slot_of(packet)];
      const std::int64_t size = engine.size_of(flow, packet);
      port.waiting_bytes += size;
      if (const std::uint32_t hop = hop_of(packet); hop > 0) engine.ports_[flow.path[hop - 1]].ingress_bytes += size;
    }
    if (!port.wire.empty()) engine.expect(link, port.wire.front());
    if (port.queue.empty() || port.paused) return;
    engine.expect_service(port, link);
  }

  // The visitor of sender_words().
  template <class Value>
  void counted(Value& value) {
    value = static_cast<Value>(next());
  }
  void due(Time& at) {
    at = next_signed();
    if (at != kNever) at += engine_.now_;
  }
  void ahead(Time& at) { at = engine_.now_ + next_signed(); }
  void age(Time& at, Time) { at = engine_.now_ - next_signed(); }
  void sent_by(std::int64_t& bytes, std::uint32_t hop) {
    bytes = engine_.ports_[flow_->path[hop]].sent_bytes - next_signed();
  }

 private:
  std::uint64_t next() {
    MANYWORLDS_CHECK(at_ < words_.size(), "state of {} words is cut short", words_.size());
    return words_[at_++];
  }
  std::int64_t next_signed() { return static_cast<std::int64_t>(next()); }
  Packet renamed(Packet packet) const { return make_packet(flows_[slot_of(packet)], 0) | (packet & kPacketRest); }

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
    engine_.pending_control_ += port.pause_wanted ? 2 : 0;
    ahead(port.busy_until);
    port.mark_error = next_signed();
    for (std::uint64_t left = next(); left > 0; --left) port.queue.push(renamed(next()));
    for (std::uint64_t left = next(); left > 0; --left) {
      Time at = 0;
      due(at);
      port.wire.push({at, renamed(next())});
    }
  }

  void read_flow(std::uint32_t slot, std::uint64_t order) {
    route_.resize(next());
    for (std::uint32_t& link : route_) link = links_[next()];
    Flow& flow = engine_.flows_[slot];
    engine_.set_up(flow, route_, order);
    flow_ = &flow;
    flow.left = static_cast<std::uint32_t>(next());
    const std::uint64_t flags = next();
    flow.at_nic = (flags & kAtNic) != 0;
    flow.offered = (flags & kOffered) != 0;
    if (flow.left > 0 || flow.offered) ++engine_.ports_[route_[0]].senders;
    flow.last_bytes = next_signed();
    due(flow.departs_at), due(flow.delivered_at);
    engine_.start_sender(flow);
    const bool protocol_counts = flow.managed && flow.left > 0;
    if (protocol_counts) sender_words<P>(flow, *this);
    flow.unacked = static_cast<std::uint32_t>(next());
    read_acks(flow);
    if (P::kWants.acks && protocol_counts) {
      for (std::uint64_t left = next(); left > 0; --left) {
        Time departed = 0;
        due(departed);
        flow.departures.push(departed);
      }
      if constexpr (P::kWants.telemetry) read_telemetry(flow);
    }
    wake(engine_, slot);
  }

  void read_acks(Flow& flow) {
    for (std::uint64_t left = next(); left > 0; --left) {
      typename Engine::Ack ack{};
      due(ack.at);
      if (P::kWants.acks && flow.managed) ack.rtt = next_signed(), ack.marked = next() != 0;
      flow.acks.push(ack);
    }
  }

  void read_telemetry(Flow& flow) {
    for (std::uint64_t left = next(); left > 0; --left) {
      TelemetryRecord* row = flow.telemetry.push();
      for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
        if (next() == 0) continue;
        TelemetryRecord& link = row[hop - 1];
        due(link.at);
        link.waiting = next_signed();
        sent_by(link.sent_bytes, hop);
      }
    }
  }

  void read_event() {
    const Time at = engine_.now_ + next_signed();
    const auto kind = static_cast<Kind>(next());
    const auto index = static_cast<std::uint32_t>(next());
    if (kind == Kind::notice) {
      engine_.push(at, kind, engine_.name_of(flows_[index]));
    } else {
      engine_.push(at, kind, links_[index]);
      engine_.pending_control_ += kind == Kind::resume ? 2 : 0;
    }
  }

  Engine& engine_;
  std::span<const std::uint64_t> words_;
  std::span<const std::uint64_t> orders_;
  std::vector<std::uint32_t>& flows_;
  std::vector<std::uint32_t>& links_;
  std::size_t at_ = 0;
  Route route_;
  Flow* flow_ = nullptr;
};

}  // namespace manyworlds::core::network
