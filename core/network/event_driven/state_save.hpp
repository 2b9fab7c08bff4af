// From an engine to canonical words.
#pragma once

#include <algorithm>
#include <tuple>

#include "core/base/error.hpp"
#include "core/network/event_driven/state_words.hpp"
#include "core/sharing/union_find.hpp"

namespace manyworlds::core::network {

/// How much flows have left: a part of the words, or only whether it is anything.
enum class LeftIs : bool { part, apart };

/// Numbers the links and flows of an engine and writes its parts. Lives for one save().
template <Protocol P>
class Saver {
  using Engine = PacketEngine<P>;
  using Flow = typename Engine::Flow;
  using Port = typename Engine::Port;

 public:
  explicit Saver(Engine& engine, LeftIs left = LeftIs::part)
      : engine_(engine),
        left_(left),
        connected_(engine.ports_.size()),
        link_number_(engine.ports_.size(), kNone),
        flow_number_(engine.flows_.size(), kNone),
        part_of_link_(engine.ports_.size(), kNone) {}

  std::vector<SavedPart> run() {
    std::vector<std::uint32_t> flows;
    for (std::uint32_t slot = 0; slot < engine_.flows_.size(); ++slot)
      if (engine_.flows_[slot].live) flows.push_back(slot);
    std::sort(flows.begin(), flows.end(),
              [&](std::uint32_t a, std::uint32_t b) { return engine_.flows_[a].order < engine_.flows_[b].order; });
    for (const std::uint32_t slot : flows)
      for (std::uint32_t hop = 1; hop < engine_.flows_[slot].hops; ++hop)
        connected_.join(engine_.flows_[slot].path[hop], engine_.flows_[slot].path[0]);
    for (const std::uint32_t slot : flows) number_flow(slot);
    number_paused_links();
    gather_events();
    for (std::size_t part = 0; part < parts_.size(); ++part) write(part);
    return std::move(parts_);
  }

  // The visitor of sender_words().
  template <class Value>
  void counted(Value value) {
    put(static_cast<std::uint64_t>(value));
  }
  void due(Time at) { put(static_cast<std::uint64_t>(at == kNever ? kNever : at - engine_.now_)); }
  void ahead(Time at) { put(static_cast<std::uint64_t>(std::max<Time>(at - engine_.now_, 0))); }
  void age(Time at, Time all_alike) { put(static_cast<std::uint64_t>(std::min(engine_.now_ - at, all_alike))); }
  void sent_by(std::int64_t bytes, std::uint32_t hop) {
    put(static_cast<std::uint64_t>(engine_.ports_[flow_->path[hop]].sent_bytes - bytes));
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t part_of(std::uint32_t link) {
    std::uint32_t& part = part_of_link_[connected_.root(link)];
    if (part == kNone) {
      part = static_cast<std::uint32_t>(parts_.size());
      parts_.emplace_back();
    }
    return part;
  }

  void number_link(std::uint32_t link, SavedPart& part) {
    if (link_number_[link] != kNone) return;
    link_number_[link] = static_cast<std::uint32_t>(part.links.size());
    part.links.push_back(link);
  }

  void number_flow(std::uint32_t slot) {
    const Flow& flow = engine_.flows_[slot];
    SavedPart& part = parts_[part_of(flow.path[0])];
    flow_number_[slot] = static_cast<std::uint32_t>(part.flows.size());
    part.flows.push_back(slot);
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) number_link(flow.path[hop], part);
  }

  // A pause outlives the flows that caused it: a link that no flow uses may still be paused or about to be.
  void number_paused_links() {
    std::vector<std::uint32_t> held;
    if (engine_.pending_control_ > 0)
      engine_.events_.for_each([&](const Event& event) {
        if (const Kind kind = Engine::kind_of(event); kind == Kind::pause || kind == Kind::resume)
          held.push_back(static_cast<std::uint32_t>(event.of()));
      });
    for (std::uint32_t link = 0; link < engine_.ports_.size(); ++link)
      if (engine_.ports_[link].paused || engine_.ports_[link].pause_wanted) held.push_back(link);
    std::sort(held.begin(), held.end());
    for (const std::uint32_t link : held) number_link(link, parts_[part_of(link)]);
  }

  // What links and flows do not say of themselves: pause and resume frames, and notices, on their way.
  void gather_events() {
    events_.resize(parts_.size());
    if (engine_.pending_control_ == 0 && !P::kWants.notices) return;
    engine_.events_.for_each([&](const Event& event) {
      const Kind kind = Engine::kind_of(event);
      const auto index = static_cast<std::uint32_t>(event.of());
      const Time in = event.at - engine_.now_;
      if (kind == Kind::notice) {
        const Flow& flow = engine_.flows_[index];
        if (!flow.live || flow.life != event.of() >> 32 || flow.left == 0) return;
        events_[part_of(flow.path[0])].push_back({in, kind, flow_number_[index]});
      } else if (kind == Kind::pause || kind == Kind::resume) {
        events_[part_of(index)].push_back({in, kind, link_number_[index]});
      }
    });
    for (auto& events : events_) std::sort(events.begin(), events.end());
  }

  void write(std::size_t index) {
    SavedPart& part = parts_[index];
    out_ = &part.words;
    put(part.links.size());
    put(part.flows.size());
    for (const std::uint32_t link : part.links) write_link(engine_.ports_[link]);
    for (const std::uint32_t slot : part.flows) write_flow(engine_.flows_[slot]);
    put(events_[index].size());
    for (const auto& [in, kind, number] : events_[index])
      put(static_cast<std::uint64_t>(in)), put(static_cast<std::uint64_t>(kind)), put(number);
  }

  void write_link(const Port& port) {
    put(static_cast<std::uint64_t>(port.spec.bits_per_second));
    put(static_cast<std::uint64_t>(port.spec.latency_ps));
    put((port.spec.leaves_gpu ? kLeavesGpu : 0) | (port.spec.enters_gpu ? kEntersGpu : 0) |
        (port.spec.scale_up ? kScaleUp : 0) | (port.paused ? kPaused : 0) | (port.pause_wanted ? kPauseWanted : 0));
    ahead(port.busy_until);
    put(static_cast<std::uint64_t>(port.mark_error));
    put(port.queue.size());
    for (std::size_t i = 0; i < port.queue.size(); ++i) put(renamed(port.queue[i]));
    put(port.wire.size());
    for (std::size_t i = 0; i < port.wire.size(); ++i) due(port.wire[i].at), put(renamed(port.wire[i].packet));
  }

  std::uint64_t renamed(Packet packet) const {
    const std::uint32_t apart = left_ == LeftIs::apart ? engine_.flows_[slot_of(packet)].left : 0;
    return static_cast<std::uint64_t>(flow_number_[slot_of(packet)]) << 40 |
           ((packet - make_packet(0, apart)) & kPacketRest);
  }

  void write_flow(Flow& flow) {
    flow_ = &flow;
    if (flow.counts_acks) engine_.take_acks(flow);
    put(flow.hops);
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) put(link_number_[flow.path[hop]]);
    put(left_ == LeftIs::apart ? flow.left > 0 : flow.left);
    put((flow.at_nic ? kAtNic : 0) | (flow.offered ? kOffered : 0));
    put(static_cast<std::uint64_t>(flow.last_bytes));
    due(flow.departs_at), due(flow.delivered_at);
    const bool protocol_counts = flow.managed && flow.left > 0;
    if (protocol_counts) sender_words<P>(flow, *this);
    if (!engine_.acks_matter(flow)) {
      put(0), put(0);
    } else {
      put(flow.unacked);
      write_acks(flow);
    }
    if (!P::kWants.acks || !protocol_counts) return;
    put(flow.departures.size());
    for (std::size_t i = 0; i < flow.departures.size(); ++i) due(flow.departures[i]);
    if constexpr (P::kWants.telemetry) write_telemetry(flow);
  }

  void write_acks(const Flow& flow) {
    put(flow.acks.size());
    for (std::size_t i = 0; i < flow.acks.size(); ++i) {
      due(flow.acks[i].at);
      if (P::kWants.acks && flow.managed) put(static_cast<std::uint64_t>(flow.acks[i].rtt)), put(flow.acks[i].marked);
    }
  }

  void write_telemetry(const Flow& flow) {
    put(flow.telemetry.size());
    for (std::uint32_t i = 0; i < flow.telemetry.size(); ++i)
      for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
        const TelemetryRecord& link = flow.telemetry.row(i)[hop - 1];
        put(link.at != kNever);
        if (link.at == kNever) continue;  // not there yet
        due(link.at), put(static_cast<std::uint64_t>(link.waiting)), sent_by(link.sent_bytes, hop);
      }
  }

  void put(std::uint64_t word) { out_->push_back(word); }

  Engine& engine_;
  LeftIs left_;
  sharing::UnionFind connected_;  // links
  std::vector<std::uint32_t> link_number_, flow_number_, part_of_link_;
  std::vector<SavedPart> parts_;
  std::vector<std::vector<std::tuple<Time, Kind, std::uint32_t>>> events_;  // by part
  Words* out_ = nullptr;
  Flow* flow_ = nullptr;
};

}  // namespace manyworlds::core::network
