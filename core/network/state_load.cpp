// From canonical words into an engine.
#include "core/error.hpp"
#include "core/network/state_codec.hpp"
#include "core/network/state_words.hpp"

namespace manyworlds::core::network {

// Lives for one load().
class Loader {
 public:
  using Kind = PacketEngine::Kind;

  Loader(PacketEngine& engine, std::span<const std::uint64_t> words, std::span<const std::uint64_t> orders,
         std::vector<std::uint32_t>& links)
      : engine_(engine),
        words_(words),
        orders_(orders),
        links_(links),
        first_flow_(static_cast<std::uint32_t>(engine.flows_.size())) {
    MANYWORLDS_CHECK(engine.free_.empty(), "flows are loaded into an engine that ended {} already",
                     engine.free_.size());
  }

  std::uint32_t run() {
    const std::uint64_t links = next(), flows = next();
    MANYWORLDS_CHECK(flows == orders_.size(), "{} flows, {} orders", flows, orders_.size());
    links_.clear();
    for (std::uint64_t i = 0; i < links; ++i) read_link();
    for (std::uint64_t i = 0; i < flows; ++i) read_flow(orders_[i]);
    for (const std::uint32_t link : links_) count_queue(link);
    for (std::uint64_t left = next(); left > 0; --left) read_event();
    for (std::uint32_t slot = first_flow_; slot < engine_.flows_.size(); ++slot) wait_for_ack(slot);
    return first_flow_;
  }

 private:
  std::uint64_t next() {
    MANYWORLDS_CHECK(at_ < words_.size(), "state of {} words is cut short", words_.size());
    return words_[at_++];
  }
  std::int64_t next_signed() { return static_cast<std::int64_t>(next()); }
  std::uint32_t next_small() { return static_cast<std::uint32_t>(next()); }
  PacketEngine::Packet renamed(PacketEngine::Packet packet) const {
    return packet + (static_cast<std::uint64_t>(first_flow_) << 40);
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
    auto& port = engine_.ports_.back();
    port.sending = (flags & kSending) != 0;
    port.paused = (flags & kPaused) != 0;
    port.pause_wanted = (flags & kPauseWanted) != 0;
    engine_.pending_control_ += port.pause_wanted ? 2 : 0;
    port.mark_error = next_signed();
    for (std::uint64_t left = next(); left > 0; --left) port.queue.push(renamed(next()));
  }

  void read_flow(std::uint64_t order) {
    route_.resize(next());
    for (std::uint32_t& link : route_) link = links_[next()];
    const std::uint32_t slot = engine_.add_flow(route_, order);
    auto& flow = engine_.flows_[slot];
    flow.left = next_small();
    flow.unacked = next_small();
    flow.last_bytes = next_signed();
    flow.at_nic = next() != 0;
    if (!flow.rate_controlled || flow.left == 0) return;
    const Time now = engine_.now_;
    RateControl& rate = flow.rate;
    rate.line = engine_.ports_[flow.path[0]].spec.bits_per_second;
    rate_words(
        rate, [&](auto& value) { value = static_cast<std::decay_t<decltype(value)>>(next()); },
        [&](Time& due) {
          due = next_signed();
          if (due != kNever) engine_.arm(slot, due += now);
        },
        [&](Time& ahead) { ahead = now + next_signed(); }, [&](Time& age) { age = now - next_signed(); });
    if (!flow.at_nic && rate.next_packet_at > now) engine_.arm(slot, rate.next_packet_at);
  }

  // What a link's queue and a switch's ingress hold follows from the packets in the queues.
  void count_queue(std::uint32_t link) {
    auto& port = engine_.ports_[link];
    for (std::size_t i = 0; i < port.queue.size(); ++i) {
      const auto packet = port.queue[i];
      const auto& flow = engine_.flows_[PacketEngine::slot_of(packet)];
      const std::int64_t size = engine_.size_of(flow, packet);
      port.queued_bytes += size;
      const std::uint32_t hop = PacketEngine::hop_of(packet);
      if (hop > 0) engine_.ports_[flow.path[hop - 1]].ingress_bytes += size;
    }
  }

  void read_event() {
    const Time at = engine_.now_ + next_signed();
    const std::uint64_t order = next(), what = next();
    const auto kind = static_cast<Kind>(order >> 56);
    if (kind == Kind::pause || kind == Kind::resume || kind == Kind::sent) {
      engine_.push(at, kind, links_[what], links_[what]);
      engine_.pending_control_ += kind == Kind::resume ? 2 : 0;
      return;
    }
    if (kind == Kind::ack || kind == Kind::congestion) {
      const auto slot = static_cast<std::uint32_t>(what + first_flow_);
      auto& flow = engine_.flows_[slot];
      if (kind == Kind::ack)
        flow.acks.push(at);
      else
        engine_.push(at, kind, flow.order, slot);
      return;
    }
    const Event event{at, (order & ~kOrderMask) | orders_[order & kOrderMask], renamed(what)};
    const std::uint32_t hop = PacketEngine::hop_of(what);
    if (hop == 0)
      engine_.events_.push(event);
    else
      engine_.travel(engine_.flows_[PacketEngine::slot_of(event.what)].path[hop - 1], event);
  }

  // A flow that has packets left and offers none waits for its window.
  void wait_for_ack(std::uint32_t slot) {
    auto& flow = engine_.flows_[slot];
    flow.blocked = !flow.rate_controlled && flow.left > 0 && !flow.at_nic;
    if (flow.blocked && !flow.acks.empty()) engine_.push(flow.acks.front(), Kind::ack, flow.order, slot);
  }

  PacketEngine& engine_;
  std::span<const std::uint64_t> words_;
  std::span<const std::uint64_t> orders_;
  std::vector<std::uint32_t>& links_;
  std::uint32_t first_flow_;
  std::size_t at_ = 0;
  Route route_;
};

std::uint32_t StateCodec::load(PacketEngine& engine, std::span<const std::uint64_t> words,
                               std::span<const std::uint64_t> orders, std::vector<std::uint32_t>& link_slots) {
  return Loader(engine, words, orders, link_slots).run();
}

}  // namespace manyworlds::core::network
