// The network of the per-packet engine: packets that are routed hop by hop, over ports that pause (lossless), drop or
// trim. Senders and receivers are an endpoint class; run() is a template over it, so that no call per packet is
// indirect.
//
// Time and ties are as in the engine for pinned paths: at one instant all completions precede all arrivals, and
// arrivals are ordered by (tie order of the flow, packet number). An idle port sends at once, so a packet that finds no
// queue costs one event per hop. A port with a queue that cannot be paused is served lazily: it catches up with the
// packets it should have sent whenever it is accessed. This is invisible until the first of them has crossed the link,
// so its service event may come later by the latency of the link (slack_ps).
//
// A link may fail between two calls of run(). Packets that it carries, that wait for it, and that come to it later are
// lost; its endpoint learns of each by lost(), where it would have arrived or is lost. Its port is then one that never
// becomes free, so that what works without failures asks for none. From that instant on an adaptive
// switch does not choose a port whose own cable is dead while it has another, as switches do that select among ports
// themselves (fast link fault recovery: NVIDIA, InfiniBand Cluster Bring-up Procedure, "SHIELD"); they do not tell
// their neighbours. Hashes are over what the forwarding tables list, until these change.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/network/engine/engine.hpp"
#include "core/network/engine/sender_protocol.hpp"
#include "core/network/fabric/forwarding_tables.hpp"
#include "core/network/fabric/router.hpp"
#include "core/network/per_packet/calendar.hpp"
#include "core/network/per_packet/packet.hpp"

namespace manyworlds::core::network::per_packet {

enum class PortKind : std::uint8_t {
  lossless,   // one queue; an ingress link is paused while too many of its bytes are queued (PFC)
  drop_tail,  // one queue of queue_bytes
  trimming,   // a queue of queue_bytes for data; packets that do not fit are trimmed to their header and join the
              // control packets, which are served first from a queue of twice that size (Handley et al., NDP,
              // SIGCOMM 2017, section 3.1)
};

/// How a switch selects the next link: by the pinned path, by a hash of path and hop, or the one with fewest bytes
/// queued.
enum class Steering : std::uint8_t { pinned, hashed, adaptive };

struct NetworkOptions;
/// A policy class of the endpoint: RuntimePortPolicy reads the kind of ports at run time from the options,
/// TrimmingPortPolicy fixes it at compile time.
struct RuntimePortPolicy {
  static PortKind kind(const NetworkOptions& options);
  static Steering steering(const NetworkOptions& options);
  static bool has_telemetry(bool has_telemetry) { return has_telemetry; }
};
struct TrimmingPortPolicy {
  static constexpr PortKind kind(const NetworkOptions&) { return PortKind::trimming; }
  static constexpr Steering steering(const NetworkOptions&) { return Steering::hashed; }
  static constexpr bool has_telemetry(bool) { return false; }
};

struct NetworkOptions {
  PortKind ports = PortKind::lossless;
  Steering steering = Steering::hashed;
  bool marks = false;
  std::int64_t full_packet_bytes = 4160, control_bytes = 64;
  std::int64_t queue_bytes = 0;  // queue of a port that drops or trims, including the packet being sent
  std::int64_t pfc_xoff_bytes = 0, pfc_xon_bytes = 0, buffer_bytes = 0;
  std::int64_t ecn_kmin_bytes = 0, ecn_kmax_bytes = 0, ecn_pmax_ppm = 0;  // at 100 Gb/s
};

inline PortKind RuntimePortPolicy::kind(const NetworkOptions& options) {
  return options.ports;
}
inline Steering RuntimePortPolicy::steering(const NetworkOptions& options) {
  return options.steering;
}

/// The kinds of events, in the order in which they are processed at one instant. A resume precedes a pause, because a
/// switch that sends both at one instant sends the pause last. The subject of an endpoint's events is a packet
/// (feedback, lost), a flow (cnp, timer, departed) or a number defined by the endpoint (pace).
enum class EventKind : std::uint64_t {
  deliver,
  feedback,
  cnp,
  timer,
  lost,
  pace,
  resume,
  pause,
  departed,
  service,
  arrive,
};
inline constexpr int kKindShift = Calendar::kOrderBits - 4;
inline constexpr std::uint64_t kArrivalOrder = static_cast<std::uint64_t>(EventKind::arrive) << kKindShift;
inline constexpr std::uint64_t kOrderMask = (1ull << kKindShift) - 1;  // the tie order: the bits below the event kind

class Network {
 public:
  Network(const NetworkOptions& options, std::shared_ptr<const ForwardingTables> forwarding);

  Time now() const { return now_; }
  Time last_activity() const { return last_activity_; }
  /// Returns whether nothing is left that can affect another packet: no packet in flight, no pause and no pending pace
  /// event.
  bool is_idle() const {
    return slab_.in_use() == pending_feedback_ + event_records_ && pending_control_ == 0 && pending_paces_ == 0;
  }
  const Counters& counters() const { return counters_; }
  Counters& counters() { return counters_; }
  const ForwardingTables& forwarding() const { return *forwarding_; }
  const NetworkOptions& options() const { return options_; }
  PacketSlab& packets() { return slab_; }
  std::size_t bytes() const;
  std::vector<LinkLoad> loads() const;  // by link

  /// Sets the tie order of a flow. The endpoint assigns the slots of flows.
  void set_tie_order(std::uint32_t flow, std::uint64_t tie_order) {
    if (flow >= flow_info_.size()) flow_info_.resize(flow + 1);
    flow_info_[flow].tie_order = tie_order;
  }
  /// Returns the number of allocated packets of a flow.
  std::uint32_t live_packets(std::uint32_t flow) const { return flow_info_[flow].live_packets; }
  /// Allocates a packet of a flow and returns its index.
  std::uint32_t allocate(std::uint32_t flow) {
    ++flow_info_[flow].live_packets;
    const std::uint32_t packet = slab_.allocate();
    slab_[packet].flow = flow;
    slab_[packet].tie_order = flow_info_[flow].tie_order;
    return packet;
  }
  void release(std::uint32_t packet) {
    --flow_info_[slab_[packet].flow].live_packets;
    slab_.release(packet);
  }
  /// Discards all pending events and packets; only valid if is_idle().
  void discard_pending() {
    events_.clear();
    slab_.clear();
    pending_feedback_ = event_records_ = 0;
    for (FlowInfo& tag : flow_info_) tag.live_packets = 0;
  }
  /// Returns whether no event is pending.
  bool no_event_pending() const { return events_.empty() && offered_.empty(); }
  /// Throws InputError that names the cycle of paused links (PFC deadlock).
  [[noreturn]] void explain_deadlock() const;

  /// Declares that transfers begin at this link. Service events of a link out of a switch may then no longer be late.
  void add_source_link(std::uint32_t link);

  /// Registers the links of a pinned path, in order. Returns the value for Packet::path.
  std::uint32_t register_pinned_path(const std::vector<std::uint32_t>& links) {
    pinned_.insert(pinned_.end(), links.begin(), links.end());
    return static_cast<std::uint32_t>(pinned_.size() - links.size());
  }
  /// Collects in-band telemetry from now on: each data packet records the state of the first `links` switch ports on
  /// its path.
  void enable_telemetry(std::size_t links);
  const Telemetry* telemetry(std::uint32_t packet) const {
    const std::size_t first = std::size_t{packet} * telemetry_links_;
    return first < telemetry_.size() ? &telemetry_[first] : nullptr;
  }

  /// Schedules an event that is no packet; the endpoint receives `subject`. Invalidates references to packets.
  void schedule(Time at, EventKind kind, std::uint64_t tie_order, std::uint32_t subject) {
    ++event_records_;
    const std::uint32_t record = slab_.allocate();
    slab_[record].number = subject;
    events_.push(at, static_cast<std::uint64_t>(kind) << kKindShift | tie_order, subject, record);
  }
  /// Schedules a pace event. The network is not idle until the endpoint's pace() was called for it.
  void schedule_pace(Time at, std::uint64_t tie_order, std::uint32_t subject) {
    ++pending_paces_;
    schedule(at, EventKind::pace, tie_order, subject);
  }

  /// Schedules the record of a delivered packet to be passed to the endpoint's feedback(): an acknowledgement that is
  /// only a delay and shares no link with packets.
  void push_feedback(Time at, std::uint32_t packet) {
    ++pending_feedback_;
    push(at, EventKind::feedback, packet);
  }

  /// Lets a link fail now.
  template <class PortPolicy>
  void fail(std::uint32_t link);
  /// Returns whether a link has failed.
  bool has_failed() const { return has_failed_; }
  /// Lets switches forward by other tables from now on, which have the same numbers of links.
  void forward_by(std::shared_ptr<const ForwardingTables> forwarding) { forwarding_ = std::move(forwarding); }

  /// Offers a packet to its first link (packet.link) now; it is ordered among the arrivals of this instant.
  void offer(std::uint32_t packet);

  /// Runs until the first instant at which a transfer of `endpoint` completes (completions() increases), at most to
  /// `limit`. Endpoint::PortPolicy is one of the port policies above.
  template <class Endpoint>
  void run(Endpoint& endpoint, Time limit);

  Time full_packet_ps(std::uint32_t link) const { return ports_[link].full_packet_ps; }
  /// Returns the time of a control packet over a link, including the latency.
  Time control_ps(std::uint32_t link) const { return ports_[link].control_packet_ps + ports_[link].latency_ps; }
  const Link& link(std::uint32_t link) const { return graph_->links[link]; }

 private:
  struct alignas(128) Port {
    Time busy_until = 0;
    Time latency_ps = 0, full_packet_ps = 0, control_packet_ps = 0;
    std::int64_t waiting_bytes = 0;
    Time data_until = 0;           // end of transmission of the current or last data packet
    std::uint32_t data_bytes = 0;  // size of that packet
    bool service_due = false;      // a service event is pending
    bool paused = false, pause_wanted = false;
    bool nic = false;      // carries only packets of the GPU that it leaves
    std::uint32_t to = 0;  // vertex at the other end
    PacketQueue queue;
    // The second cache line, used less often.
    LinkLoad load;
    Time control_queue_limit_ps = 0;  // limit of the queue of control packets, as sending time
    std::int64_t ingress_bytes = 0;   // queued bytes in the next switch that arrived over this link
    std::int64_t kmin = 0, kmax = 0, mark_error = 0;
    std::int64_t bits_per_second = 0;
    Time slack_ps = 0;              // delay allowed for service events
    std::uint32_t offered = kNone;  // list of the packets offered at this instant, in tie order, linked by `next`
    bool dead = false;              // has failed

    std::int64_t serving_data(Time now) const { return data_until > now ? data_bytes : 0; }
  };

  // As the queue of a dead port: longer than any other, so that no choice between ports falls on it.
  static constexpr std::int64_t kDeadQueueBytes = INT64_MAX / 2;

  void push(Time at, EventKind kind, std::uint32_t packet) {
    events_.push(at, static_cast<std::uint64_t>(kind) << kKindShift | slab_[packet].tie_order, slab_[packet].number,
                 packet);
  }
  /// Loads the packets and ports of the next events into the cache, if there are too many for it (1 MiB).
  void prefetch_upcoming() {
    constexpr std::size_t kInCache = (1u << 20) / sizeof(Packet);
    constexpr std::uint32_t kPacketsAhead = 12, kPortsAhead = 6;
    if (slab_.size() <= kInCache) return;
    if (events_.take_just_opened())
      events_.visit_next_bucket([&](std::uint32_t packet) { __builtin_prefetch(&slab_[packet], 1); });
    if (const std::uint32_t packet = events_.upcoming(kPacketsAhead); packet != kNone)
      __builtin_prefetch(&slab_[packet], 1);
    const std::uint32_t packet = events_.upcoming(kPortsAhead);
    if (packet == kNone || slab_[packet].next_link >= ports_.size()) return;
    const auto* port = reinterpret_cast<const char*>(&ports_[slab_[packet].next_link]);
    __builtin_prefetch(port, 1), __builtin_prefetch(port + 64, 1), __builtin_prefetch(port + 128, 1);
  }
  std::uint32_t consume_event(const Event& schedule) {
    --event_records_;
    slab_.release(static_cast<std::uint32_t>(schedule.number_and_index));
    return static_cast<std::uint32_t>(schedule.number_and_index >> 32);
  }
  template <class PortPolicy>
  std::uint32_t choose_link(const Packet& packet);
  template <class PortPolicy>
  void enter_port(std::uint32_t packet, std::uint32_t link);
  template <class PortPolicy>
  void enqueue(Port& port, std::uint32_t link, std::uint32_t packet);
  template <class PortPolicy>
  void trim_or_enqueue(Port& port, std::uint32_t link, std::uint32_t packet);
  template <class PortPolicy>
  void send_control(Port& port, std::uint32_t link, std::uint32_t packet);
  template <class PortPolicy>
  void transmit(Port& port, std::uint32_t link, std::uint32_t packet, Time begin);
  template <class PortPolicy>
  void serve(Port& port, std::uint32_t link);
  template <class PortPolicy>
  [[gnu::always_inline]] void catch_up(Port& port, std::uint32_t link) {
    if (port.busy_until <= now_ && !port.queue.empty() && !port.paused) serve<PortPolicy>(port, link);
  }
  template <class PortPolicy>
  void service(std::uint32_t link);
  template <class PortPolicy>
  void enter_offered_packets();
  void append(Port& port, std::uint32_t packet) {
    port.queue.push(slab_, packet);
    port.waiting_bytes += slab_[packet].bytes;
  }
  std::int64_t free_queue_bytes(const Port& port) const {
    return options_.queue_bytes - port.waiting_bytes - port.serving_data(now_);
  }
  void charge_ingress(const Packet& packet);
  void release_ingress(const Packet& packet);
  void send_pause_frame(EventKind kind, std::uint32_t link);
  bool mark(Port& port);
  void record_telemetry(Port& port, std::uint32_t packet, Time begin);
  void resume(std::uint32_t link);
  void drop(std::uint32_t packet) {
    ++counters_.drops;
    release(packet);
  }

  /// Returns the link that packets take where no path is left: one more than there are, and dead.
  std::uint32_t nowhere() const { return static_cast<std::uint32_t>(ports_.size() - 1); }
  void lose(std::uint32_t packet);
  void lose_carried(std::uint32_t link);

  NetworkOptions options_;
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const ForwardingTables> forwarding_;
  Time now_ = 0, last_activity_ = 0;
  Calendar events_;
  PacketSlab slab_;
  std::vector<Port> ports_;             // by link; then that to nowhere
  std::vector<std::uint32_t> offered_;  // links with packets offered at this instant
  struct FlowInfo {
    std::uint64_t tie_order = 0;
    std::uint32_t live_packets = 0;
  };
  std::vector<FlowInfo> flow_info_;   // indexed by flow
  std::size_t pending_control_ = 0;   // pause and resume frames in flight plus paused ports
  std::size_t pending_paces_ = 0;     // pending pace events
  std::size_t pending_feedback_ = 0;  // records that wait to be feedback
  std::size_t event_records_ = 0;     // records of events that are no packets
  bool has_failed_ = false;
  std::vector<std::uint32_t> pinned_;
  std::size_t telemetry_links_ = 0;
  std::vector<Telemetry> telemetry_;  // indexed by packet and by hop after the NIC
  Counters counters_;
};

}  // namespace manyworlds::core::network::per_packet

#include "core/network/per_packet/network_body.hpp"
