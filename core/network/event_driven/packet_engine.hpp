// The packet engine for pinned paths: store-and-forward links, output-queued lossless switches (PFC), one sender per
// flow as its protocol has it.
//
// Time at one instant has two phases: everything that ends (deliveries, acks, timers, pauses, transmissions), then
// everything that arrives at a port. Arrivals at a port are served by (time, order of the flow, packet). A run stops
// between the two phases, so flows that start at that instant take part in it. Nothing depends on link or flow slots:
// renaming them, or cutting out flows that share no link with the rest, gives the same times.
//
// A sender offers its next packet to its first link when the one before has left it (as a NIC schedules its queue
// pairs), so flows share a NIC packet by packet. Acks are coalesced: they arrive after a fixed delay and occupy no
// link. A buffer holds what waits, not what is being sent.
//
// A link that is free when a packet comes sends it at once, which takes no event of its own. Where something waits, a
// link catches up with what it sent whenever it is looked at: when a packet comes, a pause, or when a buffer that it
// may have relieved is full. Nobody else can tell before what it sent has crossed it, so a service event comes only so
// much later (the slack) and many packets share one; but not while such a buffer is to fall to where its link may
// resume.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/engine/event_wheel.hpp"
#include "core/network/engine/fifo.hpp"
#include "core/network/engine/pinned_engine.hpp"
#include "core/network/engine/protocol.hpp"
#include "core/network/engine/spares.hpp"
#include "core/network/engine/telemetry_rows.hpp"

namespace manyworlds::core::network {

template <Protocol P>
class Saver;
template <Protocol P>
class Loader;
template <Protocol P>
class SlicedExchange;

// Packets are plain 64-bit words: slot of the flow, number (counting down to 1, the last), hop, mark.
using Packet = std::uint64_t;
constexpr Packet make_packet(std::uint32_t slot, std::uint32_t number) {
  return static_cast<Packet>(slot) << 40 | static_cast<Packet>(number) << 8;
}
constexpr std::uint32_t slot_of(Packet packet) {
  return static_cast<std::uint32_t>(packet >> 40);
}
constexpr std::uint32_t number_of(Packet packet) {
  return static_cast<std::uint32_t>(packet >> 8);
}
constexpr std::uint32_t hop_of(Packet packet) {
  return static_cast<std::uint32_t>(packet >> 1) & 0x7F;
}
inline constexpr Packet kMark = 1, kOneHop = 2;
inline constexpr Packet kPacketRest = (1ull << 40) - 1;  // all but the slot

// In the order in which they happen at one instant. A resume comes before a pause, since a switch that sends both at
// one instant sends the pause last. Events of one kind commute: different flows and links have nothing in common by
// then; arrivals are ranked port by port.
enum class Kind : std::uint64_t { deliver, ack, notice, timer, resume, pause, departed, service, arrive };
inline constexpr std::uint64_t kOverLink = 1ull << 32;  // in what arrives: over a link; otherwise offered by a flow

template <Protocol P>
class PacketEngine final : public PinnedEngine<P>, public Repeatable {
 public:
  PacketEngine(const Transport& transport, const typename P::Parameters& parameters, bool marks);

  void reset() override;
  std::uint32_t add_link(const LinkSpec& spec) override;
  std::uint32_t start(const Route& route, std::int64_t bytes, std::uint64_t order) override;
  void run(Time limit, std::vector<std::uint32_t>& completed) override;
  PauseWaits standstill() const override;
  Time now() const override { return now_; }
  Time quiet_since() const override { return quiet_since_; }
  bool drained() const override { return live_ == 0 && pending_control_ == 0; }
  const Counters& counters() const override { return counters_; }
  std::vector<SavedPart> save() override;
  void load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> orders,
            std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) override;
  void set_order(std::uint32_t flow_slot, std::uint64_t order) override { flows_[flow_slot].order = order; }
  std::unique_ptr<Engine> clone() const override { return std::make_unique<PacketEngine>(*this); }

  Repeatable* repeatable() override { return this; }
  std::uint32_t left(std::uint32_t flow_slot) const override { return flows_[flow_slot].left; }
  std::uint32_t links(std::uint32_t flow_slot) const override { return flows_[flow_slot].hops; }
  void watch(std::uint32_t flow_slot, std::uint32_t left) override { watched_ = flow_slot, watched_left_ = left; }
  Words recurring() override;
  void pass_over(std::span<const std::uint32_t> packets) override;

 private:
  using Pinned = PinnedEngine<P>;
  using Pinned::acks_matter, Pinned::fits, Pinned::window_of;
  using Pinned::transport_, Pinned::parameters_, Pinned::packet_bytes_, Pinned::marks_;

  friend class Saver<P>;
  friend class Loader<P>;
  friend class SlicedExchange<P>;

  static Kind kind_of(const Event& event) { return static_cast<Kind>(event.kind()); }

  /// A packet on the way to the other end of a link.
  struct Travelling {
    Time at;
    Packet packet;
  };

  struct PortState {
    Time busy_until = 0;             // what is being sent is gone then
    Time service_at = kNever;        // when the port is looked at because something waits
    Time slack_ps = 0;               // by which that may come after what waits can begin to be sent
    std::int64_t waiting_bytes = 0;  // in the queue
    std::int64_t ingress_bytes = 0;  // came over this link and wait in the switch behind it
    Time full_packet_ps = 0;
    Time control_ps = 0;  // until a pause frame sent against this link takes effect
    std::int64_t kmin = 0, kmax = 0;
    std::int64_t mark_error = 0;  // RED by error diffusion, parts per million
    std::int64_t sent_bytes = 0;  // for telemetry
    Time claimed_at = -1;         // when packets last arrived here
    std::uint32_t claim = 0;      // the last of them, in batch_
    std::uint32_t pressed = 0;    // links that are to be paused and of which packets may wait here
    std::uint32_t senders = 0;    // flows of which packets are still to come here first
    bool paused = false, pause_wanted = false;
    bool forwards = false;  // what comes over other links; not only what flows offer
    LinkSpec spec;
  };
  struct Port : PortState {
    Fifo<Travelling> wire;  // in order; the first stands among the events as well
    Fifo<Packet> queue;
    std::vector<std::uint32_t> onward;  // links by which what comes over this one goes on
  };

  /// A packet at the port it comes to at this instant.
  struct Arrival {
    Packet packet;
    std::uint32_t port;
    std::uint32_t before;  // another one there, or kAlone
  };
  static constexpr std::uint32_t kAlone = UINT32_MAX, kNoFlow = UINT32_MAX;

  struct Ack {
    Time at;
    Time rtt;
    bool marked;
  };

  struct FlowState {
    std::uint64_t order = 0;
    std::array<std::uint32_t, kMaxHops> path{};
    std::uint32_t hops = 0;
    std::uint32_t left = 0;       // packets not yet offered; the next one carries this number
    std::uint32_t unacked = 0;    // offered, and not among the acks taken from `acks`
    std::int64_t last_bytes = 0;  // size of packet number 1
    Time ack_ps = 0;
    Time next_packet_at = 0;     // pacing
    Time departs_at = kNever;    // the packet at the NIC, once it is being sent
    Time delivered_at = kNever;  // the last packet, once it is on its last link
    Time last_notice = 0;        // receiver: when it last told the sender of a mark
    Time timer_at = kNever;      // the next deadline for which an event is pending
    bool live = false, at_nic = false;
    bool managed = false;      // by the protocol; scale-up transfers have a fixed window
    bool counts_acks = false;  // has a window
    bool offered = false;      // to the NIC at this instant, and not arrived there yet
    bool blocked = false;      // by its window: the next ack wakes it
    P sender;
  };
  struct Flow : FlowState {
    std::uint32_t life = 0;   // counts uses of this slot, so that old events are recognised
    Fifo<Ack> acks;           // on their way, in order; taken when the window is looked at
    Fifo<Time> departures;    // of packets in the network, if the protocol wants acks
    TelemetryRows telemetry;  // of packets not acknowledged and links behind the NIC's, if it wants that
  };

  std::uint32_t take_slot() { return network::take_slot(free_, flows_, spare_flows_); }
  void set_up(Flow& flow, const Route& route, std::uint64_t order);
  void start_sender(Flow& flow);
  void goes_on(std::uint32_t link, std::uint32_t onward);
  void push(Time at, Kind kind, std::uint64_t of) { events_.push({at, static_cast<std::uint64_t>(kind), of}); }
  std::uint64_t name_of(std::uint32_t slot) const { return std::uint64_t{flows_[slot].life} << 32 | slot; }
  void expect(std::uint32_t link, const Travelling& next) { push(next.at, Kind::arrive, kOverLink | link); }
  void run_events(std::vector<std::uint32_t>& completed);
  void handle(const Event& event);
  void handle_flow(Kind kind, std::uint32_t slot);
  void arrive_all(const Event& first);
  Packet take_arrival(const Event& event);
  void arrive_ranked(std::uint32_t last);
  void arrive(Packet packet);
  void wait(Port& port, std::uint32_t index, const Flow& flow, Packet packet);
  void press(std::uint32_t from, std::uint32_t to);
  void transmit(Port& port, std::uint32_t index, Flow& flow, Packet packet, Time begin);
  void serve(Port& port, std::uint32_t index, Time until);
  void catch_up();
  void expect_service(Port& port, std::uint32_t index) {
    port.service_at = port.busy_until + (port.pressed > 0 ? 0 : port.slack_ps);
    push(port.service_at, Kind::service, index);
  }
  void leave_network(Flow& flow, Packet packet, Time delivered);
  void service(std::uint32_t index);
  void paused(std::uint32_t index);
  void resume(std::uint32_t index);
  void departed(std::uint32_t slot);
  void offer(std::uint32_t slot, bool alone = false);
  void complete(std::uint32_t slot);
  void take_acks(Flow& flow);
  bool window_open(Flow& flow, std::uint32_t slot);
  void timer(std::uint32_t slot);
  void arm(Flow& flow, std::uint32_t slot);
  bool mark(Port& port);
  std::int64_t size_of(const Flow& flow, Packet packet) const {
    return number_of(packet) == 1 ? flow.last_bytes : packet_bytes_;
  }

  Time now_ = 0, quiet_since_ = 0;
  EventWheel events_;
  std::vector<Port> ports_, spare_ports_;
  std::vector<Flow> flows_, spare_flows_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
  std::size_t pending_control_ = 0;  // pause and resume frames on their way, and ports still paused
  std::vector<Arrival> batch_;       // of one instant
  std::vector<std::pair<std::uint64_t, Packet>> ranked_;
  std::vector<std::uint32_t>* completed_ = nullptr;
  std::uint32_t watched_ = kNoFlow, watched_left_ = 0;
  Time limit_ = 0;          // of the run
  Time inline_before_ = 0;  // arrivals at an instant before this one may be handled without going through the events
  std::array<Telemetry, P::kWants.telemetry ? kMaxHops : 0> told_;  // by one acknowledgement
  Counters counters_;
};

}  // namespace manyworlds::core::network
