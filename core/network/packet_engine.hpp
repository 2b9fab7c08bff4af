// The packet engine: store-and-forward links, output-queued lossless switches (PFC), window and DCQCN senders.
//
// Time at one instant has two phases: everything that ends (deliveries, acks, timers, pauses, transmissions), then
// everything that arrives at a port. Arrivals at a port are served by (time, order of the flow, packet). A run stops
// between the two phases, so flows that start at that instant take part in it. Nothing depends on link or flow slots:
// renaming them, or cutting out flows that share no link with the rest, gives the same times.
//
// A sender offers its next packet to its first link when the one before has left it (as a NIC schedules its queue
// pairs), so flows share a NIC packet by packet. Acks are coalesced: they arrive after a fixed delay and occupy no
// link.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/network/dcqcn.hpp"
#include "core/network/event_heap.hpp"
#include "core/network/fabric.hpp"
#include "core/network/fifo.hpp"
#include "core/network/transport.hpp"

namespace manyworlds::core::network {

/// What happened on the way, besides completions.
struct Counters {
  std::int64_t link_hops = 0;  // packets times links, simulated here
  std::int64_t ecn_marks = 0;
  std::int64_t pauses = 0;
  Counters& operator+=(const Counters& other) {
    link_hops += other.link_hops, ecn_marks += other.ecn_marks, pauses += other.pauses;
    return *this;
  }
};

class PacketEngine {
 public:
  explicit PacketEngine(const Transport& transport);

  /// Forgets every link and flow, and starts again at time 0; what memory it has it keeps.
  void reset();

  /// A link for flows to use; returns its slot.
  std::uint32_t add_link(const LinkSpec& spec);

  /// Starts a transfer of `bytes` (>= 0; an empty one is a single header) at time now(). `order` (< 2^56) ranks it
  /// against other flows in ties and must be unique among live flows. Returns its slot, which is used again after it
  /// ends.
  std::uint32_t start(const Route& route, std::int64_t bytes, std::uint64_t order);

  /// Runs until the first instant at which flows complete, but not past `limit`; appends their slots to `completed`.
  /// Afterwards now() is that instant (or `limit`). Throws InternalError if flows are left with nothing to wait for.
  void run(Time limit, std::vector<std::uint32_t>& completed);

  Time now() const { return now_; }
  Time quiet_since() const { return quiet_since_; }  // the last event
  bool drained() const { return live_ == 0 && pending_control_ == 0; }
  const Counters& counters() const { return counters_; }

 private:
  friend class StateCodec;  // canonical state in and out, for the memo
  friend class Saver;
  friend class Loader;

  // Packets are plain 64-bit words: slot of the flow, number (counting down to 1, the last), hop, mark.
  using Packet = std::uint64_t;
  static Packet make_packet(std::uint32_t slot, std::uint32_t number) {
    return static_cast<Packet>(slot) << 40 | static_cast<Packet>(number) << 8;
  }
  static std::uint32_t slot_of(Packet packet) { return static_cast<std::uint32_t>(packet >> 40); }
  static std::uint32_t number_of(Packet packet) { return static_cast<std::uint32_t>(packet >> 8); }
  static std::uint32_t hop_of(Packet packet) { return static_cast<std::uint32_t>(packet >> 1) & 0x7F; }
  static constexpr Packet kMark = 1, kOneHop = 2;

  enum class Kind : std::uint64_t { deliver, ack, congestion, timer, pause, resume, sent, arrive };
  static constexpr auto kDeliver = static_cast<std::uint64_t>(Kind::deliver);
  static constexpr auto kArrive = static_cast<std::uint64_t>(Kind::arrive);
  static Kind kind_of(const Event& event) { return static_cast<Kind>(event.order >> 56); }

  struct PortState {
    LinkSpec spec;
    Time full_packet_ps = 0;
    Time control_ps = 0;  // until a pause frame sent against this link takes effect
    std::int64_t kmin = 0, kmax = 0;
    std::int64_t queued_bytes = 0;   // waiting or being sent
    std::int64_t ingress_bytes = 0;  // arrived over this link and still in the switch behind it
    std::int64_t mark_error = 0;     // RED by error diffusion, parts per million
    bool sending = false, paused = false, pause_wanted = false;
  };
  struct Port : PortState {
    Fifo<Packet> queue;  // its front is being sent while `sending`
    Fifo<Event> wire;    // on the way to the other end, in order; the first stands in the heap as well
  };

  struct FlowState {
    std::uint64_t order = 0;
    std::array<std::uint32_t, kMaxHops> path{};
    std::uint32_t hops = 0;
    std::uint32_t left = 0;       // packets not yet offered; the next one carries this number
    std::uint32_t unacked = 0;    // offered, and not among the acks taken from `acks`
    std::uint32_t window = 0;     // packets
    std::int64_t last_bytes = 0;  // size of packet number 1
    Time ack_ps = 0;
    bool live = false, at_nic = false, rate_controlled = false;
    bool blocked = false;  // by its window: the next ack wakes it
    RateControl rate;
  };
  struct Flow : FlowState {
    Fifo<Time> acks;  // when they come, in order; taken when the window is looked at
  };

  std::uint32_t add_flow(const Route& route, std::uint64_t order);
  void push(Time at, Kind kind, std::uint64_t order, std::uint64_t what);
  void run_events(Time limit, std::vector<std::uint32_t>& completed);
  void handle(const Event& event);
  void travel(std::uint32_t port, const Event& event);
  bool next_in_line(const Event& event, Event& next);
  void deliver(Packet packet);
  void arrive(Packet packet);
  void begin_sending(std::uint32_t port);
  void sent(std::uint32_t port);
  void offer(std::uint32_t slot);
  bool window_open(Flow& flow, std::uint32_t slot);
  void leave_network(Flow& flow, Packet packet, std::uint32_t port);
  void timer(std::uint32_t slot);
  void arm(std::uint32_t slot, Time at);
  bool mark(Port& port);
  bool acks_matter(const Flow& flow) const { return flow.left > 0 && flow.unacked + flow.left > flow.window; }
  std::int64_t size_of(const Flow& flow, Packet packet) const {
    return number_of(packet) == 1 ? flow.last_bytes : packet_bytes_;
  }

  Transport transport_;
  std::int64_t packet_bytes_;
  Time now_ = 0, quiet_since_ = 0;
  EventHeap events_;
  std::vector<Port> ports_, spare_ports_;
  std::vector<Flow> flows_, spare_flows_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
  std::size_t pending_control_ = 0;  // pause and resume frames on their way, and ports still paused
  std::vector<std::uint32_t>* completed_ = nullptr;
  Time inline_before_ = 0;  // arrivals at an instant before this one may be handled without going through the heap
  Counters counters_;
};

}  // namespace manyworlds::core::network
