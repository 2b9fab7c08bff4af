// The network of the second engine: packets as individuals that choose their way hop by hop, over ports that pause
// (lossless), drop or trim. What runs at its ends is an endpoint; run() is a template over it, so that nothing is
// called through a pointer per packet.
//
// Time and ties are those of the first engine: at one instant all that ends comes before all that arrives, and arrivals
// are ordered by (order of the flow, packet). An idle port sends at once; a port has a service event only while
// something waits in it. So a packet that meets no queue costs one event per hop.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/network/engine.hpp"
#include "core/network/fabric.hpp"
#include "core/network/forwarding.hpp"
#include "core/network/individual/calendar.hpp"
#include "core/network/individual/packet.hpp"
#include "core/network/protocol.hpp"

namespace manyworlds::core::network::individual {

enum class PortKind : std::uint8_t {
  lossless,   // one queue; the link a packet came by is paused while too much of it waits (PFC)
  drop_tail,  // one queue of queue_bytes
  trimming,   // a queue of queue_bytes for data; what does not fit is cut to its header and joins the control packets,
              // which are served first and have twice that room (Handley et al., NDP, SIGCOMM 2017, section 3.1)
};

enum class Steering : std::uint8_t { pinned, hashed, adaptive };

struct NetworkOptions {
  PortKind ports = PortKind::lossless;
  Steering steering = Steering::hashed;
  bool marks = false;
  std::int64_t full_packet_bytes = 4160, control_bytes = 64;
  std::int64_t queue_bytes = 0;  // of ports that drop or trim, what is being sent included
  std::int64_t pfc_xoff_bytes = 0, pfc_xon_bytes = 0, buffer_bytes = 0;
  std::int64_t ecn_kmin_bytes = 0, ecn_kmax_bytes = 0, ecn_pmax_ppm = 0;  // at 100 Gb/s
};

/// A mixing step for hashed decisions (the finaliser of SplitMix64).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// In the order in which they happen at one instant. An endpoint's own events carry a packet (feedback), a flow, or
/// what it likes (pace).
enum class Kind : std::uint64_t { deliver, feedback, notice, timer, pace, pause, resume, departed, service, arrive };
inline constexpr std::uint64_t kOrderMask = (1ull << 56) - 1;  // of an event's order: what is below its kind

class Network {
 public:
  Network(const NetworkOptions& options, std::shared_ptr<const Forwarding> forwarding);

  Time now() const { return now_; }
  Time quiet_since() const { return quiet_since_; }
  /// No packet is left that could meet another, no pause, and no pacer that has something to do.
  bool quiet() const { return slab_.in_use() == parked_ && pending_control_ == 0 && pacing_ == 0; }
  const Counters& counters() const { return counters_; }
  Counters& counters() { return counters_; }
  const Forwarding& forwarding() const { return *forwarding_; }
  const NetworkOptions& options() const { return options_; }
  PacketSlab& packets() { return slab_; }
  std::size_t bytes() const;
  std::vector<LinkLoad> loads() const;  // by link

  /// Slots of flows are the endpoint's; the network needs their order in ties.
  void set_order(std::uint32_t flow, std::uint64_t order) {
    if (flow >= tags_.size()) tags_.resize(flow + 1);
    tags_[flow].order = order;
  }
  /// Packets of a flow that are anywhere.
  std::uint32_t in_air(std::uint32_t flow) const { return tags_[flow].in_air; }
  std::uint32_t take(std::uint32_t flow) {
    ++tags_[flow].in_air;
    const std::uint32_t packet = slab_.take();
    slab_[packet].flow = flow;
    return packet;
  }
  void release(std::uint32_t packet) {
    --tags_[slab_[packet].flow].in_air;
    slab_.release(packet);
  }
  /// Forgets what is pending; only if it is quiet.
  void forget() {
    events_.clear();
    slab_.clear();
    parked_ = 0;
    for (Tag& tag : tags_) tag.in_air = 0;
  }
  /// Nothing will ever happen again.
  bool stuck() const { return events_.empty(); }
  /// Throws InputError with the cycle of ports that wait for each other.
  [[noreturn]] void explain_standstill() const;

  /// Links in order that pinned packets follow: the value for their `path`.
  std::uint32_t pin(const std::vector<std::uint32_t>& links) {
    pinned_.insert(pinned_.end(), links.begin(), links.end());
    return static_cast<std::uint32_t>(pinned_.size() - links.size());
  }
  /// From now on data packets tell how they found each port of a switch.
  void watch() { watched_ = true; }
  const Telemetry* telemetry(std::uint32_t packet) const { return telemetry_[packet].data(); }

  void push(Time at, Kind kind, std::uint64_t order, std::uint64_t what) {
    events_.push({at, static_cast<std::uint64_t>(kind) << 56 | order, what});
  }
  /// A pacer's event holds the network from being quiet, until pace() is called with it.
  void push_pace(Time at, std::uint64_t order, std::uint64_t what) {
    ++pacing_;
    push(at, Kind::pace, order, what);
  }

  /// The record of a delivered packet waits until it is given back as feedback, and meets nothing on its way.
  void push_feedback(Time at, std::uint32_t packet) {
    ++parked_;
    push(at, Kind::feedback, tags_[slab_[packet].flow].order, what(packet));
  }

  /// A packet is offered to its first link (packet.link) at this instant, and takes its turn among the arrivals.
  void offer(std::uint32_t packet) {
    if (now_ < inline_before_ && events_.nothing_at(now_)) return enter(packet, slab_[packet].link);
    push(now_, Kind::arrive, tags_[slab_[packet].flow].order, what(packet));
  }

  /// Runs until the first instant at which `endpoint` completes something (its completions() grow), at most to `limit`.
  template <class Endpoint>
  void run(Endpoint& endpoint, Time limit);

  Time full_packet_ps(std::uint32_t link) const { return ports_[link].full_packet_ps; }
  /// Of a control packet over a link, its latency included.
  Time control_ps(std::uint32_t link) const { return ports_[link].control_packet_ps + ports_[link].latency_ps; }
  const Link& link(std::uint32_t link) const { return forwarding_->graph().links[link]; }

 private:
  struct alignas(64) Port {
    Time busy_until = 0;
    Time latency_ps = 0, full_packet_ps = 0, control_packet_ps = 0;
    std::int64_t waiting_bytes = 0;
    Time data_until = 0;  // what is, or was last, being sent from the queue is gone then; it has
    std::uint32_t data_bytes = 0;
    bool service_due = false;  // a service event is pending: something waits
    bool paused = false, pause_wanted = false;
    PacketQueue queue;
    // Second cache line: what only queues that are not empty need.
    Time control_room_ps = 0;        // that waiting control packets may take
    std::int64_t ingress_bytes = 0;  // came over this link and wait in the switch behind it
    std::int64_t kmin = 0, kmax = 0, mark_error = 0;
    std::int64_t bits_per_second = 0;
    LinkLoad load;

    std::int64_t serving_data(Time now) const { return data_until > now ? data_bytes : 0; }
  };

  std::uint64_t what(std::uint32_t packet) const {
    return static_cast<std::uint64_t>(slab_[packet].number) << 32 | packet;
  }
  std::uint32_t choose(const Packet& packet) const;
  void enter(std::uint32_t packet, std::uint32_t link);
  void wait(Port& port, std::uint32_t link, std::uint32_t packet);
  void wait_trimming(Port& port, std::uint32_t link, std::uint32_t packet);
  void send_control(Port& port, std::uint32_t link, std::uint32_t packet);
  void join(Port& port, std::uint32_t packet);
  std::int64_t data_room(const Port& port) const {
    return options_.queue_bytes - port.waiting_bytes - port.serving_data(now_);
  }
  void hold_ingress(const Packet& packet);
  void release_ingress(const Packet& packet);
  bool mark(Port& port);
  void transmit(Port& port, std::uint32_t link, std::uint32_t packet, Time begin);
  void observe(Port& port, std::uint32_t packet);
  void service(std::uint32_t link);
  void resume(std::uint32_t link);
  void drop(std::uint32_t packet) {
    ++counters_.drops;
    release(packet);
  }

  NetworkOptions options_;
  std::shared_ptr<const Forwarding> forwarding_;
  Time now_ = 0, quiet_since_ = 0;
  Time inline_before_ = 0;  // arrivals at an instant before this one may be handled without an event
  Calendar events_;
  PacketSlab slab_;
  std::vector<Port> ports_;
  std::vector<std::uint32_t> to_;  // by link: the vertex it leads to
  struct Tag {
    std::uint64_t order = 0;
    std::uint32_t in_air = 0;
  };
  std::vector<Tag> tags_;            // by flow
  std::size_t pending_control_ = 0;  // pause and resume frames on their way, and ports still paused
  std::size_t pacing_ = 0;
  std::size_t parked_ = 0;  // records that wait to be feedback
  std::vector<std::uint32_t> pinned_;
  bool watched_ = false;
  std::vector<std::array<Telemetry, kMaxHops>> telemetry_;  // by packet, of each hop past its NIC
  Counters counters_;
};

// ---- What happens per packet, for the compiler to see whole ----

inline std::uint32_t Network::choose(const Packet& packet) const {
  if (options_.steering == Steering::pinned) return pinned_[packet.path + (packet.hop & ~kMarked)];
  const auto candidates = forwarding_->onward(to_[packet.link], packet.destination);
  if (candidates.size() == 1) return candidates[0];
  const std::uint64_t drawn = mixed(packet.path ^ static_cast<std::uint64_t>(packet.hop & ~kMarked) << 32);
  std::size_t pick = (drawn >> 32) * candidates.size() >> 32;
  if (options_.steering != Steering::adaptive) return candidates[pick];
  // Least bytes ahead; among equals the first from the drawn one on, so that none is favoured.
  std::uint32_t best = candidates[pick];
  std::int64_t least = INT64_MAX;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Port& port = ports_[candidates[pick]];
    const std::int64_t ahead = port.waiting_bytes + port.serving_data(now_);
    if (ahead < least) least = ahead, best = candidates[pick];
    if (++pick == candidates.size()) pick = 0;
  }
  return best;
}

inline void Network::enter(std::uint32_t packet, std::uint32_t link) {
  Port& port = ports_[link];
  if (port.busy_until <= now_ && !port.service_due && !port.paused)
    transmit(port, link, packet, now_);
  else
    wait(port, link, packet);
}

/// From `begin` on, when the port is free.
inline void Network::transmit(Port& port, std::uint32_t link, std::uint32_t index, Time begin) {
  Packet& packet = slab_[index];
  const std::int64_t bytes = packet.bytes;
  const Time duration = bytes == options_.full_packet_bytes ? port.full_packet_ps
                        : bytes == options_.control_bytes   ? port.control_packet_ps
                                                            : serialization_ps(bytes, port.bits_per_second);
  port.busy_until = begin + duration;
  ++port.load.packets;
  port.load.bytes += bytes;
  port.load.busy_ps += duration;
  ++counters_.link_hops;
  if (watched_) observe(port, index);
  const std::uint64_t order = tags_[packet.flow].order;
  if (packet.kind == PacketKind::data || options_.ports != PortKind::trimming) {
    port.data_until = port.busy_until;
    port.data_bytes = packet.bytes;
  }
  if (packet.kind == PacketKind::data && packet.hop == 0) {
    packet.sent_at = begin;
    push(port.busy_until, Kind::departed, order, packet.flow);
  }
  packet.link = link;
  ++packet.hop;
  push(port.busy_until + port.latency_ps, to_[link] == packet.destination ? Kind::deliver : Kind::arrive, order,
       what(index));
}

inline void Network::service(std::uint32_t link) {
  Port& port = ports_[link];
  port.service_due = false;
  if (port.paused) return;
  if (port.busy_until <= now_) {
    const std::uint32_t index = port.queue.pop(slab_);
    const Packet& packet = slab_[index];
    port.waiting_bytes -= packet.bytes;
    if (options_.ports == PortKind::lossless) release_ingress(packet);
    transmit(port, link, index, now_);
    if (port.queue.empty()) {
      port.mark_error = 0;  // an idle port remembers nothing
      return;
    }
  }  // else control packets came between
  port.service_due = true;
  push(port.busy_until, Kind::service, link, link);
}

template <class Endpoint>
void Network::run(Endpoint& endpoint, Time limit) {
  inline_before_ = limit;
  const std::size_t before = endpoint.completions();
  while (!events_.empty()) {
    const Event event = events_.top();
    const auto kind = static_cast<Kind>(event.order >> 56);
    if (endpoint.completions() > before) {
      inline_before_ = now_;  // this instant is the last; its arrivals stay
      if (event.at > now_ || kind == Kind::arrive) break;
    } else if (event.at > limit || (event.at == limit && kind == Kind::arrive)) {
      now_ = limit;
      break;
    }
    events_.pop();
    now_ = event.at;
    const auto index = static_cast<std::uint32_t>(event.what);
    switch (kind) {
      case Kind::arrive: {
        const Packet& packet = slab_[index];
        enter(index, packet.hop == 0 ? packet.link : choose(packet));
        break;
      }
      case Kind::deliver:
        quiet_since_ = now_;
        endpoint.deliver(index);
        break;
      case Kind::service:
        service(index);
        break;
      case Kind::departed:
        endpoint.departed(index);
        break;
      case Kind::pause:
        quiet_since_ = now_;
        ports_[index].paused = true;
        break;
      case Kind::resume:
        quiet_since_ = now_;
        resume(index);
        break;
      case Kind::pace:
        --pacing_;
        quiet_since_ = now_;
        endpoint.pace(index);
        break;
      case Kind::feedback:
        --parked_;
        endpoint.feedback(index);
        break;
      case Kind::notice:
        endpoint.notice(index);
        break;
      case Kind::timer:
        endpoint.timer(index);
        break;
    }
  }
  inline_before_ = 0;  // what starts between runs must be ranked with what else starts then
  if (events_.empty() && endpoint.completions() == before && limit != kNever) now_ = limit;
}

}  // namespace manyworlds::core::network::individual
