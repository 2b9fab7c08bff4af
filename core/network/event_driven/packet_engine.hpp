// The event-driven packet engine for pinned paths: store-and-forward links, output-queued lossless switches (PFC), and
// one sender per flow that follows its transport protocol.
//
// An instant has two phases: first everything that ends (deliveries, acks, timers, pauses, transmissions), then all
// arrivals at ports. Arrivals at a port are served in the order (time, tie order of the flow, packet). run() stops
// between the two phases, so that flows that start at that instant compete in its arrivals. No result depends on link
// or flow slots: renumbering them, or removing flows that share no link with the rest, gives the same times.
//
// A sender offers its next packet to its first link when the previous one has left it (as a NIC schedules its queue
// pairs), so flows share a NIC packet by packet. Acks are coalesced: they arrive after a fixed delay and occupy no
// link. A buffer holds the packets that wait, not the packet that is being sent.
//
// A link that is idle when a packet arrives sends it at once, without an event. A link with a queue is simulated
// lazily: it catches up with its transmissions when a packet or a pause frame arrives, or when an ingress buffer that
// it may have drained exceeds XOFF. No other port can observe a transmission before it has crossed the link, so the
// service event of a link may be later by the link latency (the slack), and many packets share one event. The slack is
// not used while an ingress buffer that the link drains has to fall to XON.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/engine/event_wheel.hpp"
#include "core/network/engine/sender_protocol.hpp"
#include "core/network/engine/slot_pool.hpp"
#include "core/network/state/network_state.hpp"
#include "core/network/state/state_words.hpp"

namespace manyworlds::core::network {

// Event kinds, in the order in which they are handled at one instant. A resume precedes a pause, since a switch that
// sends both at one instant sends the pause last. Events of one kind commute, because they concern different flows or
// links; arrivals are sorted port by port.
enum class EventKind : std::uint64_t { deliver, ack, cnp, timer, resume, pause, departed, service, arrive };
inline constexpr std::uint64_t kOverLink = 1ull << 32;  // in an arrival's subject: over a link, not from a flow

template <SenderProtocol P>
class PacketEngine final : public Engine {
 public:
  PacketEngine(const Transport& transport, const typename P::Parameters& parameters, bool ecn_enabled);

  void reset() override;
  std::uint32_t add_link(const LinkSpec& spec) override;
  std::uint32_t start(const Route& route, std::int64_t bytes, std::uint64_t tie_order) override;
  void run(Time limit, std::vector<std::uint32_t>& completed) override;
  PauseDependencies deadlock() const override;
  Time now() const override { return now_; }
  Time last_activity() const override { return last_activity_; }
  bool drained() const override { return live_ == 0 && pending_pfc_ == 0; }
  const Counters& counters() const override { return counters_; }
  std::vector<ComponentState> save() override;
  void load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> tie_orders,
            std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) override;
  void set_tie_order(std::uint32_t flow_slot, std::uint64_t tie_order) override {
    flows_[flow_slot].tie_order = tie_order;
  }
  std::unique_ptr<Engine> clone() const override { return std::make_unique<PacketEngine>(*this); }

  std::uint32_t remaining(std::uint32_t flow_slot) const override { return flows_[flow_slot].remaining; }
  std::uint32_t links(std::uint32_t flow_slot) const override { return flows_[flow_slot].hops; }
  void watch(std::uint32_t flow_slot, std::uint32_t remaining) override {
    watched_ = flow_slot, watched_remaining_ = remaining;
  }
  StateWords periodic_state() override;
  void skip(std::span<const std::uint32_t> packets) override;

 private:
  static EventKind kind_of(const Event& event) { return static_cast<EventKind>(event.kind()); }

  /// What the engine derives from the state of a link.
  struct PortFields {
    Time service_at = kNever;        // time of the pending service event
    Time slack_ps = 0;               // how much later than possible the service event may be
    std::int64_t waiting_bytes = 0;  // bytes in the queue
    std::int64_t ingress_bytes = 0;  // bytes that arrived over this link and wait in the switch behind it
    Time full_packet_ps = 0;
    Time control_ps = 0;  // delay until a pause frame sent to this link's sender takes effect
    std::int64_t kmin = 0, kmax = 0;
    std::int64_t sent_bytes = 0;     // for telemetry
    Time last_arrival_at = -1;       // the instant of the latest arrivals in batch_
    std::uint32_t last_arrival = 0;  // index in batch_ of the last of them
    std::uint32_t over_xoff = 0;     // ingress links that are being paused and whose packets may wait here
    std::uint32_t senders = 0;       // flows with this first link that have packets to offer
    bool forwards = false;           // receives packets from other links, not only from flows
  };
  struct Port : LinkState, PortFields {
    std::vector<std::uint32_t> downstream;  // next links of the packets that arrive over this one
  };

  /// A packet that arrives at a port at this instant.
  struct Arrival {
    Packet packet;
    std::uint32_t port;
    std::uint32_t previous;  // previous arrival at the same port, or kNoArrival
  };
  static constexpr std::uint32_t kNoArrival = UINT32_MAX, kNoFlow = UINT32_MAX;

  /// What the engine derives from the state of a flow.
  struct FlowIndex {
    std::uint64_t tie_order = 0;
    Time ack_ps = 0;
    Time timer_at = kNever;  // earliest deadline with a pending event
    bool live = false;
    bool uses_cc = false;      // congestion-controlled by the protocol; scale-up transfers have a fixed window
    bool counts_acks = false;  // a window or the protocol needs the acks
    bool blocked = false;      // by its window, until the next ack
  };
  struct Flow : FlowState<P>, FlowIndex {
    std::uint32_t generation = 0;  // number of uses of this slot, which identifies outdated events
    std::span<const std::uint32_t> links() const { return {this->path.data(), this->hops}; }
  };

  std::uint32_t acquire_slot() { return network::acquire_slot(free_, flows_, spare_flows_); }
  void set_up(Flow& flow, const Route& route, std::uint64_t tie_order);
  void set_size(Flow& flow, std::int64_t bytes) const;
  void start_sender(Flow& flow);
  PathInfo path_info(const Flow& flow) const;
  void add_downstream(std::uint32_t link, std::uint32_t downstream);
  void push(Time at, EventKind kind, std::uint64_t subject) {
    events_.push({at, static_cast<std::uint64_t>(kind), subject});
  }
  std::uint64_t flow_handle(std::uint32_t slot) const { return std::uint64_t{flows_[slot].generation} << 32 | slot; }
  void schedule_arrival(std::uint32_t link, const InFlightPacket& next) {
    push(next.at, EventKind::arrive, kOverLink | link);
  }
  void run_events(std::vector<std::uint32_t>& completed);
  void handle(const Event& event);
  void handle_flow(EventKind kind, std::uint32_t slot);
  void arrive_all(const Event& first);
  Packet take_arrival(const Event& event);
  void arrive_ranked(std::uint32_t last);
  void arrive(Packet packet);
  void enqueue(Port& port, std::uint32_t index, const Flow& flow, Packet packet);
  void check_xoff(std::uint32_t from, std::uint32_t to);
  void transmit(Port& port, std::uint32_t index, Flow& flow, Packet packet, Time begin);
  void serve(Port& port, std::uint32_t index, Time until);
  void catch_up();
  void schedule_service(Port& port, std::uint32_t index) {
    port.service_at = port.busy_until + (port.over_xoff > 0 ? 0 : port.slack_ps);
    push(port.service_at, EventKind::service, index);
  }
  void leave_network(Flow& flow, Packet packet, Time delivered);
  void service(std::uint32_t index);
  void paused(std::uint32_t index);
  void resume(std::uint32_t index);
  void departed(std::uint32_t slot);
  void offer(std::uint32_t slot, bool sole_arrival = false);
  void complete(std::uint32_t slot);
  void process_acks(Flow& flow);
  bool window_open(Flow& flow, std::uint32_t slot);
  void timer(std::uint32_t slot);
  void arm_timer(Flow& flow, std::uint32_t slot);
  bool mark(Port& port);
  std::int64_t size_of(const Flow& flow, Packet packet) const {
    return number_of(packet) == 1 ? flow.last_bytes : packet_bytes_;
  }
  std::int64_t window_of(const Flow& flow) const {
    return flow.uses_cc ? flow.sender.window_bytes() : transport_.window_bytes;
  }
  bool fits_window(const Flow& flow) const {
    return flow.unacked == 0 || (flow.unacked + std::int64_t{1}) * packet_bytes_ <= window_of(flow);
  }
  /// Returns whether acks in flight can still affect the flow.
  bool acks_matter(const Flow& flow) const {
    if (!flow.counts_acks || flow.remaining == 0) return false;
    if (P::kNeeds.acks && flow.uses_cc) return true;
    return (flow.unacked + static_cast<std::int64_t>(flow.remaining)) * packet_bytes_ > window_of(flow);
  }

  enum class Remaining : bool { included, excluded };
  std::vector<ComponentState> save(Remaining remaining);
  std::vector<std::uint32_t> paused_links() const;
  std::vector<std::vector<ControlFrame>> control_frames(ComponentNumbering& numbering) const;
  void write_flow(Flow& flow, StateWriter& writer);
  Time least_ps(const Flow& flow) const;
  std::uint32_t read_link(StateReader& reader);
  void read_flow(std::uint32_t slot, std::uint64_t tie_order, StateReader& reader);
  void read_frame(StateReader& reader);
  SentBytes sent_bytes(const Flow& flow) const;
  void schedule_flow(std::uint32_t slot);
  void schedule_link(std::uint32_t link);

  Transport transport_;
  typename P::Parameters parameters_;
  std::int64_t packet_bytes_;  // size of a full packet, including headers
  bool ecn_enabled_;
  Time now_ = 0, last_activity_ = 0;
  EventWheel events_;
  std::vector<Port> ports_, spare_ports_;
  std::vector<Flow> flows_, spare_flows_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
  std::size_t pending_pfc_ = 0;  // pause and resume frames in flight, and paused ports
  std::vector<Arrival> batch_;   // arrivals of one instant
  std::vector<std::pair<std::uint64_t, Packet>> ranked_;
  Route route_;  // of the flow that is written or read
  std::vector<std::uint32_t>* completed_ = nullptr;
  std::uint32_t watched_ = kNoFlow, watched_remaining_ = 0;
  Time limit_ = 0;          // of the current run()
  Time inline_before_ = 0;  // arrivals before this instant may bypass the event queue
  std::array<Telemetry, P::kNeeds.telemetry ? kMaxHops : 0> ack_telemetry_;  // telemetry of one acknowledgement
  Counters counters_;
};

}  // namespace manyworlds::core::network
