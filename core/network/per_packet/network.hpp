// The network of the second engine: packets as individuals that choose their way hop by hop, over ports that pause
// (lossless), drop or trim. What runs at its ends is an endpoint; run() is a template over it, so that nothing is
// called through a pointer per packet.
//
// Time and ties are those of the first engine: at one instant all that ends comes before all that arrives, and arrivals
// are ordered by (order of the flow, packet). An idle port sends at once, so that a packet that meets no queue costs
// one event per hop. Where something waits, a port that cannot be paused catches up with what it sent whenever it is
// looked at; nobody can tell before that has crossed the link, so a service event comes only so much later.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/network/engine/engine.hpp"
#include "core/network/engine/protocol.hpp"
#include "core/network/fabric/fabric.hpp"
#include "core/network/fabric/forwarding.hpp"
#include "core/network/per_packet/calendar.hpp"
#include "core/network/per_packet/packet.hpp"

namespace manyworlds::core::network::individual {

enum class PortKind : std::uint8_t {
  lossless,   // one queue; the link a packet came by is paused while too much of it waits (PFC)
  drop_tail,  // one queue of queue_bytes
  trimming,   // a queue of queue_bytes for data; what does not fit is cut to its header and joins the control packets,
              // which are served first and have twice that room (Handley et al., NDP, SIGCOMM 2017, section 3.1)
};

enum class Steering : std::uint8_t { pinned, hashed, adaptive };

struct NetworkOptions;
/// How an endpoint has its packets handled: as the options say, or known when the program is compiled.
struct PortsAsGiven {
  static PortKind kind(const NetworkOptions& options);
  static Steering steering(const NetworkOptions& options);
  static bool watched(bool watched) { return watched; }
};
struct TrimmingPorts {
  static constexpr PortKind kind(const NetworkOptions&) { return PortKind::trimming; }
  static constexpr Steering steering(const NetworkOptions&) { return Steering::hashed; }
  static constexpr bool watched(bool) { return false; }
};

struct NetworkOptions {
  PortKind ports = PortKind::lossless;
  Steering steering = Steering::hashed;
  bool marks = false;
  std::int64_t full_packet_bytes = 4160, control_bytes = 64;
  std::int64_t queue_bytes = 0;  // of ports that drop or trim, what is being sent included
  std::int64_t pfc_xoff_bytes = 0, pfc_xon_bytes = 0, buffer_bytes = 0;
  std::int64_t ecn_kmin_bytes = 0, ecn_kmax_bytes = 0, ecn_pmax_ppm = 0;  // at 100 Gb/s
};

inline PortKind PortsAsGiven::kind(const NetworkOptions& options) {
  return options.ports;
}
inline Steering PortsAsGiven::steering(const NetworkOptions& options) {
  return options.steering;
}

/// In the order in which they happen at one instant. A resume comes before a pause, since a switch that sends both at
/// one instant sends the pause last. An endpoint's own events carry a packet (feedback), a flow, or what it likes
/// (pace).
enum class Kind : std::uint64_t { deliver, feedback, notice, timer, pace, resume, pause, departed, service, arrive };
inline constexpr int kKindShift = Calendar::kOrderBits - 4;
inline constexpr std::uint64_t kArrivals = static_cast<std::uint64_t>(Kind::arrive) << kKindShift;
inline constexpr std::uint64_t kOrderMask = (1ull << kKindShift) - 1;  // of an event's order: what is below its kind

class Network {
 public:
  Network(const NetworkOptions& options, std::shared_ptr<const Forwarding> forwarding);

  Time now() const { return now_; }
  Time quiet_since() const { return quiet_since_; }
  /// No packet is left that could meet another, no pause, and no pacer that has something to do.
  bool quiet() const { return slab_.in_use() == parked_ + notes_ && pending_control_ == 0 && pacing_ == 0; }
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
    slab_[packet].key = tags_[flow].order;
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
    parked_ = notes_ = 0;
    for (Tag& tag : tags_) tag.in_air = 0;
  }
  /// Nothing will ever happen again.
  bool stuck() const { return events_.empty() && offered_.empty(); }
  /// Throws InputError with the cycle of ports that wait for each other.
  [[noreturn]] void explain_standstill() const;

  /// Transfers begin at this link; if it leaves a switch, its services can be late no more.
  void send_from(std::uint32_t link);

  /// Links in order that pinned packets follow: the value for their `path`.
  std::uint32_t pin(const std::vector<std::uint32_t>& links) {
    pinned_.insert(pinned_.end(), links.begin(), links.end());
    return static_cast<std::uint32_t>(pinned_.size() - links.size());
  }
  /// From now on data packets tell how they found each port of a switch, the first `links` of them.
  void watch(std::size_t links);
  const Telemetry* telemetry(std::uint32_t packet) const {
    const std::size_t first = std::size_t{packet} * watched_links_;
    return first < telemetry_.size() ? &telemetry_[first] : nullptr;
  }

  /// Something other than a packet happens at `at`: `subject` says to what. References to packets end here.
  void note(Time at, Kind kind, std::uint64_t order, std::uint32_t subject) {
    ++notes_;
    const std::uint32_t record = slab_.take();
    slab_[record].number = subject;
    events_.push(slab_, record, at, static_cast<std::uint64_t>(kind) << kKindShift | order);
  }
  /// A pacer's note holds the network from being quiet, until pace() is called with it.
  void note_pace(Time at, std::uint64_t order, std::uint32_t subject) {
    ++pacing_;
    note(at, Kind::pace, order, subject);
  }

  /// The record of a delivered packet waits until it is given back as feedback, and meets nothing on its way.
  void push_feedback(Time at, std::uint32_t packet) {
    ++parked_;
    push(at, Kind::feedback, packet);
  }

  /// A packet is offered to its first link (packet.link) at this instant, and takes its turn among the arrivals.
  void offer(std::uint32_t packet);

  /// Runs until the first instant at which `endpoint` completes something (its completions() grow), at most to `limit`.
  /// Endpoint::Ports is one of the above.
  template <class Endpoint>
  void run(Endpoint& endpoint, Time limit);

  Time full_packet_ps(std::uint32_t link) const { return ports_[link].full_packet_ps; }
  /// Of a control packet over a link, its latency included.
  Time control_ps(std::uint32_t link) const { return ports_[link].control_packet_ps + ports_[link].latency_ps; }
  const Link& link(std::uint32_t link) const { return forwarding_->graph().links[link]; }

 private:
  struct alignas(128) Port {
    Time busy_until = 0;
    Time latency_ps = 0, full_packet_ps = 0, control_packet_ps = 0;
    std::int64_t waiting_bytes = 0;
    Time data_until = 0;  // what is, or was last, being sent from the queue is gone then; it has
    std::uint32_t data_bytes = 0;
    bool service_due = false;  // a service event is pending
    bool paused = false, pause_wanted = false;
    bool nic = false;      // takes what its GPU sends, and nothing else
    std::uint32_t to = 0;  // vertex it leads to
    PacketQueue queue;
    // Second cache line.
    LinkLoad load;
    Time control_room_ps = 0;        // that waiting control packets may take
    std::int64_t ingress_bytes = 0;  // came over this link and wait in the switch behind it
    std::int64_t kmin = 0, kmax = 0, mark_error = 0;
    std::int64_t bits_per_second = 0;
    Time slack_ps = 0;              // by which service events may come late
    std::uint32_t offered = kNone;  // packets at this instant, in their order, linked by `next`

    std::int64_t serving_data(Time now) const { return data_until > now ? data_bytes : 0; }
  };

  static std::uint64_t order_of(const Packet& packet) { return packet.key & kOrderMask; }
  void push(Time at, Kind kind, std::uint32_t packet) {
    events_.push(slab_, packet, at, static_cast<std::uint64_t>(kind) << kKindShift | order_of(slab_[packet]));
  }
  std::uint32_t subject_of(const Event& note) {
    --notes_;
    slab_.release(static_cast<std::uint32_t>(note.what));
    return static_cast<std::uint32_t>(note.what >> 32);
  }
  template <class Ports>
  std::uint32_t choose(const Packet& packet);
  template <class Ports>
  void enter(std::uint32_t packet, std::uint32_t link);
  template <class Ports>
  void wait(Port& port, std::uint32_t link, std::uint32_t packet);
  template <class Ports>
  void wait_trimming(Port& port, std::uint32_t link, std::uint32_t packet);
  template <class Ports>
  void send_control(Port& port, std::uint32_t link, std::uint32_t packet);
  template <class Ports>
  void transmit(Port& port, std::uint32_t link, std::uint32_t packet, Time begin);
  template <class Ports>
  void serve(Port& port, std::uint32_t link);
  template <class Ports>
  void catch_up(Port& port, std::uint32_t link) {
    if (port.busy_until <= now_ && !port.queue.empty() && !port.paused) serve<Ports>(port, link);
  }
  template <class Ports>
  void service(std::uint32_t link);
  template <class Ports>
  void enter_offered();
  void join(Port& port, std::uint32_t packet) {
    port.queue.push(slab_, packet);
    port.waiting_bytes += slab_[packet].bytes;
  }
  std::int64_t data_room(const Port& port) const {
    return options_.queue_bytes - port.waiting_bytes - port.serving_data(now_);
  }
  void hold_ingress(const Packet& packet);
  void release_ingress(const Packet& packet);
  bool mark(Port& port);
  void observe(Port& port, std::uint32_t packet, Time begin);
  void resume(std::uint32_t link);
  void drop(std::uint32_t packet) {
    ++counters_.drops;
    release(packet);
  }

  NetworkOptions options_;
  std::shared_ptr<const Forwarding> forwarding_;
  Time now_ = 0, quiet_since_ = 0;
  Calendar events_;
  PacketSlab slab_;
  std::vector<Port> ports_;
  std::vector<std::uint32_t> offered_;  // links that something was offered to at this instant
  struct Tag {
    std::uint64_t order = 0;
    std::uint32_t in_air = 0;
  };
  std::vector<Tag> tags_;            // by flow
  std::size_t pending_control_ = 0;  // pause and resume frames on their way, and ports still paused
  std::size_t pacing_ = 0;
  std::size_t parked_ = 0;  // records that wait to be feedback
  std::size_t notes_ = 0;   // records that are events but no packets
  std::vector<std::uint32_t> pinned_;
  std::size_t watched_links_ = 0;
  std::vector<Telemetry> telemetry_;  // by packet and link behind its NIC's
  Counters counters_;
};

}  // namespace manyworlds::core::network::individual

#include "core/network/per_packet/network_body.hpp"
