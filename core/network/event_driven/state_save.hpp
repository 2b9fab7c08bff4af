// Saves the state of a packet engine as canonical words.
#pragma once

#include <algorithm>
#include <tuple>

#include "core/base/error.hpp"
#include "core/network/event_driven/state_words.hpp"
#include "core/sharing/union_find.hpp"

namespace manyworlds::core::network {

/// Whether the words contain the number of remaining packets of a flow, or only whether it is zero.
enum class RemainingPackets : bool { part, excluded };

/// Numbers the links and flows of an engine and writes its flow components. Exists for the duration of one save().
template <SenderProtocol P>
class Saver {
  using Engine = PacketEngine<P>;
  using Flow = typename Engine::Flow;
  using Port = typename Engine::Port;

 public:
  explicit Saver(Engine& engine, RemainingPackets remaining = RemainingPackets::part)
      : engine_(engine),
        remaining_(remaining),
        connected_(engine.ports_.size()),
        link_number_(engine.ports_.size(), kNone),
        flow_number_(engine.flows_.size(), kNone),
        component_of_link_(engine.ports_.size(), kNone) {}

  std::vector<ComponentState> run() {
    std::vector<std::uint32_t> flows;
    for (std::uint32_t slot = 0; slot < engine_.flows_.size(); ++slot)
      if (engine_.flows_[slot].live) flows.push_back(slot);
    std::sort(flows.begin(), flows.end(), [&](std::uint32_t a, std::uint32_t b) {
      return engine_.flows_[a].tie_order < engine_.flows_[b].tie_order;
    });
    for (const std::uint32_t slot : flows)
      for (std::uint32_t hop = 1; hop < engine_.flows_[slot].hops; ++hop)
        connected_.join(engine_.flows_[slot].path[hop], engine_.flows_[slot].path[0]);
    for (const std::uint32_t slot : flows) number_flow(slot);
    number_paused_links();
    collect_events();
    for (std::size_t part = 0; part < components_.size(); ++part) write(part);
    return std::move(components_);
  }

  // Visitor interface of visit_sender_state().
  template <class Value>
  void scalar(Value value) {
    put(static_cast<std::uint64_t>(value));
  }
  void deadline(Time at) { put(static_cast<std::uint64_t>(at == kNever ? kNever : at - engine_.now_)); }
  void future_time(Time at) { put(static_cast<std::uint64_t>(std::max<Time>(at - engine_.now_, 0))); }
  void age(Time at, Time max_age) { put(static_cast<std::uint64_t>(std::min(engine_.now_ - at, max_age))); }
  void link_bytes(std::int64_t bytes, std::uint32_t hop) {
    put(static_cast<std::uint64_t>(engine_.ports_[flow_->path[hop]].sent_bytes - bytes));
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t component_of(std::uint32_t link) {
    std::uint32_t& part = component_of_link_[connected_.root(link)];
    if (part == kNone) {
      part = static_cast<std::uint32_t>(components_.size());
      components_.emplace_back();
    }
    return part;
  }

  void number_link(std::uint32_t link, ComponentState& part) {
    if (link_number_[link] != kNone) return;
    link_number_[link] = static_cast<std::uint32_t>(part.links.size());
    part.links.push_back(link);
  }

  void number_flow(std::uint32_t slot) {
    const Flow& flow = engine_.flows_[slot];
    ComponentState& part = components_[component_of(flow.path[0])];
    flow_number_[slot] = static_cast<std::uint32_t>(part.flows.size());
    part.flows.push_back(slot);
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) number_link(flow.path[hop], part);
  }

  // A pause can outlast the flows that caused it: a link that no flow uses may still be paused or about to be.
  void number_paused_links() {
    std::vector<std::uint32_t> paused_links;
    if (engine_.pending_pfc_ > 0)
      engine_.events_.for_each([&](const Event& event) {
        if (const EventKind kind = Engine::kind_of(event); kind == EventKind::pause || kind == EventKind::resume)
          paused_links.push_back(static_cast<std::uint32_t>(event.subject()));
      });
    for (std::uint32_t link = 0; link < engine_.ports_.size(); ++link)
      if (engine_.ports_[link].paused || engine_.ports_[link].pause_wanted) paused_links.push_back(link);
    std::sort(paused_links.begin(), paused_links.end());
    for (const std::uint32_t link : paused_links) number_link(link, components_[component_of(link)]);
  }

  // Collects the events that do not follow from the state of links and flows: pause and resume frames, and CNPs.
  void collect_events() {
    events_.resize(components_.size());
    if (engine_.pending_pfc_ == 0 && !P::kNeeds.cnps) return;
    engine_.events_.for_each([&](const Event& event) {
      const EventKind kind = Engine::kind_of(event);
      const auto index = static_cast<std::uint32_t>(event.subject());
      const Time delay = event.at - engine_.now_;
      if (kind == EventKind::cnp) {
        const Flow& flow = engine_.flows_[index];
        if (!flow.live || flow.generation != event.subject() >> 32 || flow.remaining == 0) return;
        events_[component_of(flow.path[0])].push_back({delay, kind, flow_number_[index]});
      } else if (kind == EventKind::pause || kind == EventKind::resume) {
        events_[component_of(index)].push_back({delay, kind, link_number_[index]});
      }
    });
    for (auto& events : events_) std::sort(events.begin(), events.end());
  }

  void write(std::size_t index) {
    ComponentState& part = components_[index];
    out_ = &part.words;
    put(part.links.size());
    put(part.flows.size());
    for (const std::uint32_t link : part.links) write_link(engine_.ports_[link]);
    for (const std::uint32_t slot : part.flows) write_flow(engine_.flows_[slot]);
    put(events_[index].size());
    for (const auto& [delay, kind, number] : events_[index])
      put(static_cast<std::uint64_t>(delay)), put(static_cast<std::uint64_t>(kind)), put(number);
  }

  void write_link(const Port& port) {
    put(static_cast<std::uint64_t>(port.spec.bits_per_second));
    put(static_cast<std::uint64_t>(port.spec.latency_ps));
    put((port.spec.leaves_gpu ? kLeavesGpu : 0) | (port.spec.enters_gpu ? kEntersGpu : 0) |
        (port.spec.scale_up ? kScaleUp : 0) | (port.paused ? kPaused : 0) | (port.pause_wanted ? kPauseWanted : 0));
    future_time(port.busy_until);
    put(static_cast<std::uint64_t>(port.mark_error));
    put(port.queue.size());
    for (std::size_t i = 0; i < port.queue.size(); ++i) put(with_flow_number(port.queue[i]));
    put(port.wire.size());
    for (std::size_t i = 0; i < port.wire.size(); ++i)
      deadline(port.wire[i].at), put(with_flow_number(port.wire[i].packet));
  }

  std::uint64_t with_flow_number(Packet packet) const {
    const std::uint32_t excluded =
        remaining_ == RemainingPackets::excluded ? engine_.flows_[slot_of(packet)].remaining : 0;
    return static_cast<std::uint64_t>(flow_number_[slot_of(packet)]) << 40 |
           ((packet - make_packet(0, excluded)) & kAllButSlotMask);
  }

  void write_flow(Flow& flow) {
    flow_ = &flow;
    if (flow.counts_acks) engine_.process_acks(flow);
    put(flow.hops);
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) put(link_number_[flow.path[hop]]);
    put(remaining_ == RemainingPackets::excluded ? flow.remaining > 0 : flow.remaining);
    put((flow.at_nic ? kAtNic : 0) | (flow.offered ? kOffered : 0));
    put(static_cast<std::uint64_t>(flow.last_bytes));
    deadline(flow.departs_at), deadline(flow.delivered_at);
    const bool protocol_counts = flow.uses_cc && flow.remaining > 0;
    if (protocol_counts) visit_sender_state<P>(flow, *this);
    if (!engine_.acks_matter(flow)) {
      put(0), put(0);
    } else {
      put(flow.unacked);
      write_acks(flow);
    }
    if (!P::kNeeds.acks || !protocol_counts) return;
    put(flow.departures.size());
    for (std::size_t i = 0; i < flow.departures.size(); ++i) deadline(flow.departures[i]);
    if constexpr (P::kNeeds.telemetry) write_telemetry(flow);
  }

  void write_acks(const Flow& flow) {
    put(flow.acks.size());
    for (std::size_t i = 0; i < flow.acks.size(); ++i) {
      deadline(flow.acks[i].at);
      if (P::kNeeds.acks && flow.uses_cc) put(static_cast<std::uint64_t>(flow.acks[i].rtt)), put(flow.acks[i].marked);
    }
  }

  void write_telemetry(const Flow& flow) {
    put(flow.telemetry.size());
    for (std::uint32_t i = 0; i < flow.telemetry.size(); ++i)
      for (std::uint32_t hop = 1; hop < flow.hops; ++hop) {
        const TelemetryRecord& link = flow.telemetry.row(i)[hop - 1];
        put(link.at != kNever);
        if (link.at == kNever) continue;  // the packet has not reached this link
        deadline(link.at), put(static_cast<std::uint64_t>(link.waiting_bytes)), link_bytes(link.sent_bytes, hop);
      }
  }

  void put(std::uint64_t word) { out_->push_back(word); }

  Engine& engine_;
  RemainingPackets remaining_;
  sharing::UnionFind connected_;  // over links
  std::vector<std::uint32_t> link_number_, flow_number_, component_of_link_;
  std::vector<ComponentState> components_;
  std::vector<std::vector<std::tuple<Time, EventKind, std::uint32_t>>> events_;  // by component
  StateWords* out_ = nullptr;
  Flow* flow_ = nullptr;
};

}  // namespace manyworlds::core::network
