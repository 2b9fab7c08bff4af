// From an engine to canonical words.
#include "core/network/state_codec.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/network/state_words.hpp"
#include "core/sharing/union_find.hpp"

namespace manyworlds::core::network {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint64_t kPacketRest = (1ull << 40) - 1;  // a packet without its flow

}  // namespace

// Numbers the links and flows of an engine and writes its parts. Lives for one save().
class Saver {
 public:
  using Flow = PacketEngine::Flow;
  using Kind = PacketEngine::Kind;

  explicit Saver(const PacketEngine& engine)
      : engine_(engine),
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

 private:
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
    std::vector<bool> control(engine_.ports_.size());
    for (const Event& event : engine_.events_.all())
      if (kind_of(event) == Kind::pause || kind_of(event) == Kind::resume) control[event.what] = true;
    for (std::uint32_t link = 0; link < engine_.ports_.size(); ++link) {
      const auto& port = engine_.ports_[link];
      if (control[link] || port.paused || port.pause_wanted) number_link(link, parts_[part_of(link)]);
    }
  }

  static Kind kind_of(const Event& event) { return PacketEngine::kind_of(event); }

  // Everything that is going to happen, from the heap and from the lines behind it.
  std::vector<Event> pending() const {
    std::vector<Event> all;
    for (const Event& event : engine_.events_.all()) {
      const Kind kind = kind_of(event);
      const bool offered = kind == Kind::arrive && PacketEngine::hop_of(event.what) == 0;
      const bool congestion = kind == Kind::congestion && matters(event);
      if (offered || congestion || kind == Kind::pause || kind == Kind::resume || kind == Kind::sent)
        all.push_back(event);
    }
    for (const auto& port : engine_.ports_)
      for (std::size_t i = 0; i < port.wire.size(); ++i) all.push_back(port.wire[i]);
    for (std::uint32_t slot = 0; slot < engine_.flows_.size(); ++slot) {
      const Flow& flow = engine_.flows_[slot];
      const std::uint32_t taken = acks_taken(flow);
      if (!flow.live || !acks_matter(flow)) continue;
      for (std::size_t i = taken; i < flow.acks.size(); ++i)
        all.push_back({flow.acks[i], static_cast<std::uint64_t>(Kind::ack) << 56 | flow.order, slot});
    }
    return all;
  }

  // Acks that have come by now, though nobody has looked at them.
  std::uint32_t acks_taken(const Flow& flow) const {
    std::uint32_t taken = 0;
    while (taken < flow.acks.size() && flow.acks[taken] <= engine_.now_) ++taken;
    return taken;
  }
  bool acks_matter(const Flow& flow) const {
    return !flow.rate_controlled && flow.left > 0 && flow.unacked - acks_taken(flow) + flow.left > flow.window;
  }

  bool matters(const Event& congestion) const {
    const Flow& flow = engine_.flows_[congestion.what];
    return flow.live && flow.order == (congestion.order & kOrderMask) && flow.left > 0;
  }

  std::uint64_t renamed(PacketEngine::Packet packet) const {
    return static_cast<std::uint64_t>(flow_number_[PacketEngine::slot_of(packet)]) << 40 | (packet & kPacketRest);
  }

  void gather_events() {
    events_.resize(parts_.size());
    for (Event event : pending()) {
      const Kind kind = kind_of(event);
      const std::uint64_t top = event.order & ~kOrderMask;
      std::uint32_t link = 0;
      if (kind == Kind::pause || kind == Kind::resume || kind == Kind::sent) {
        link = static_cast<std::uint32_t>(event.what);
        event.what = link_number_[link];
        event.order = top | event.what;
      } else {
        const bool packet = kind == Kind::deliver || kind == Kind::arrive;
        const auto slot = packet ? PacketEngine::slot_of(event.what) : static_cast<std::uint32_t>(event.what);
        link = engine_.flows_[slot].path[0];
        event.what = packet ? renamed(event.what) : flow_number_[slot];
        event.order = top | flow_number_[slot];
      }
      event.at -= engine_.now_;
      events_[part_of(link)].push_back(event);
    }
    for (auto& events : events_)
      std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.before(b); });
  }

  void write(std::size_t index) {
    SavedPart& part = parts_[index];
    out_ = &part.words;
    put(part.links.size());
    put(part.flows.size());
    for (const std::uint32_t link : part.links) write_link(engine_.ports_[link]);
    for (const std::uint32_t slot : part.flows) write_flow(engine_.flows_[slot]);
    put(events_[index].size());
    for (const Event& event : events_[index])
      put(static_cast<std::uint64_t>(event.at)), put(event.order), put(event.what);
  }

  void write_link(const PacketEngine::Port& port) {
    put(static_cast<std::uint64_t>(port.spec.bits_per_second));
    put(static_cast<std::uint64_t>(port.spec.latency_ps));
    put((port.spec.leaves_gpu ? kLeavesGpu : 0) | (port.spec.enters_gpu ? kEntersGpu : 0) |
        (port.spec.scale_up ? kScaleUp : 0) | (port.sending ? kSending : 0) | (port.paused ? kPaused : 0) |
        (port.pause_wanted ? kPauseWanted : 0));
    put(port.queue.empty() ? 0 : static_cast<std::uint64_t>(port.mark_error));
    put(port.queue.size());
    for (std::size_t i = 0; i < port.queue.size(); ++i) put(renamed(port.queue[i]));
  }

  void write_flow(const Flow& flow) {
    put(flow.hops);
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) put(link_number_[flow.path[hop]]);
    put(flow.left);
    put(acks_matter(flow) ? flow.unacked - acks_taken(flow) : 0);
    put(static_cast<std::uint64_t>(flow.last_bytes));
    put(flow.at_nic);
    if (!flow.rate_controlled || flow.left == 0) return;
    const RateControl& rate = flow.rate;
    const Time now = engine_.now_;
    rate_words(
        rate, [&](auto value) { put(static_cast<std::uint64_t>(value)); },
        [&](Time due) { put(static_cast<std::uint64_t>(due == kNever ? kNever : due - now)); },
        [&](Time ahead) { put(static_cast<std::uint64_t>(std::max<Time>(ahead - now, 0))); },
        [&](Time age) { put(static_cast<std::uint64_t>(std::min(now - age, kCnpInterval))); });
  }

  void put(std::uint64_t word) { out_->push_back(word); }

  const PacketEngine& engine_;
  sharing::UnionFind connected_;  // links
  std::vector<std::uint32_t> link_number_, flow_number_, part_of_link_;
  std::vector<SavedPart> parts_;
  std::vector<std::vector<Event>> events_;  // by part
  Words* out_ = nullptr;
};

std::vector<SavedPart> StateCodec::save(const PacketEngine& engine) {
  return Saver(engine).run();
}

}  // namespace manyworlds::core::network
