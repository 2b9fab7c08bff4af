// The time-sliced packet engine for pinned paths, without an event queue, for protocols that need no individual
// acknowledgements. It follows the rules of packet_engine.hpp and gives the same times, counters and saved words.
//
// Nothing passes from one port to another in less than the minimum link latency (the lookahead of conservative parallel
// simulation). Time is therefore divided into slices of that length: the actions of a port within a slice depend only
// on earlier slices, so the active ports are visited one after the other in any order. They exchange packet trains
// (time of the first packet, gap, count). A visit may end anywhere within a slice, where the state at that instant is
// needed.
//
// The last packet of a flow begins its last link more than a slice before its delivery, so the completions within a
// slice are known before its ports are visited: run() advances from one completion to the next, where flows may start.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/network/event_driven/packet_engine.hpp"

namespace manyworlds::core::network {

/// A protocol that needs neither individual acknowledgements nor telemetry.
template <class P>
concept TimeSlicedProtocol = SenderProtocol<P> && !P::kNeeds.acks && !P::kNeeds.telemetry;

template <SenderProtocol P>
class TimeSlicedExchange;

template <TimeSlicedProtocol P>
class TimeSlicedEngine final : public PinnedEngine<P> {
 public:
  TimeSlicedEngine(const Transport& transport, const typename P::Parameters& parameters, bool ecn_enabled);

  void reset() override;
  std::uint32_t add_link(const LinkSpec& spec) override;
  std::uint32_t start(const Route& route, std::int64_t bytes, std::uint64_t tie_order) override;
  void run(Time limit, std::vector<std::uint32_t>& completed) override;
  PauseDependencies deadlock() const override;
  Time now() const override { return delegates_ ? event_driven_.now() : now_; }
  Time last_activity() const override {
    return delegates_ ? event_driven_.last_activity() : std::max(last_activity_, std::min(now_, pfc_until_));
  }
  bool drained() const override {
    return delegates_ ? event_driven_.drained() : live_ == 0 && pausing_ingresses_ == 0 && now_ >= pfc_until_;
  }
  /// The counters are exact when no flow is live and after save(); at other times they may lag by the current slice.
  const Counters& counters() const override { return delegates_ ? event_driven_.counters() : counters_; }
  std::vector<ComponentState> save() override;
  void load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> tie_orders,
            std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) override;
  void set_tie_order(std::uint32_t flow_slot, std::uint64_t tie_order) override;
  std::unique_ptr<Engine> clone() const override { return std::make_unique<TimeSlicedEngine>(*this); }

 private:
  using Pinned = PinnedEngine<P>;
  using Pinned::acks_matter, Pinned::fits_window;
  using Pinned::transport_, Pinned::parameters_, Pinned::packet_bytes_, Pinned::ecn_enabled_;

  friend class TimeSlicedExchange<P>;

  /// Equally spaced packets of one flow at one port, with their arrival times; in a queue the times are no longer
  /// meaningful. The last packet of a flow may be shorter and is always a train by itself.
  struct PacketTrain {
    Time at = 0, gap = 0;     // arrival of the first packet, and time between packets
    std::uint32_t slot = 0;   // slot of the flow
    std::uint32_t first = 0;  // number of the first packet; numbers count down to 1, the last of the flow
    std::uint32_t count = 0;
    std::uint16_t hop = 0;
    bool marked = false;
    Time last() const { return at + (count - 1) * gap; }
  };
  /// A pause or resume that takes effect at a port.
  struct PfcTransition {
    Time at = 0;
    bool pause = false;
  };
  /// Changes of the bytes that arrived over one ingress link and wait in the switch behind it; negative when packets
  /// leave their queue.
  struct IngressDelta {
    Time at = 0, gap = 0;
    std::int64_t bytes = 0;  // per change
    std::uint32_t count = 0;
  };
  /// Bytes that begin to be sent, or change an ingress count, at a time.
  struct TimedBytes {
    Time at = 0;
    std::int64_t bytes = 0;
  };

  struct Port {
    LinkSpec spec;
    Time full_packet_ps = 0, control_ps = 0;  // transmission of a full packet; delay of a pause frame to the sender
    std::int64_t kmin = 0, kmax = 0;
    Time free_at = 0;                    // end of the current transmission
    std::int64_t waiting_bytes = 0;      // bytes in the queue
    std::int64_t ingress_bytes = 0;      // bytes that arrived over this link and wait in the switch behind it
    std::int64_t max_slice_bytes = 0;    // upper bound of the bytes that arrive over this link in a slice
    std::int64_t mark_error = 0;         // RED by error diffusion, parts per million
    std::uint64_t scheduled = 0;         // bit mask over the slices of the ring
    std::uint64_t touched_in_round = 0;  // the round in which ingress_bytes last changed
    bool paused = false, pause_wanted = false;
    bool may_pause = false;  // the link may be paused or resumed in that round, so the order of the changes matters
    Fifo<PacketTrain> queue;
    std::vector<PacketTrain> inbox;       // trains that have not arrived
    Fifo<PfcTransition> pfc_transitions;  // future pauses and resumes
    std::vector<IngressDelta> ingress_deltas;
    std::int64_t added_bytes = 0;        // sum of the positive changes
    std::vector<std::uint32_t> senders;  // flows with this first link, until their last packet has left it
  };

  /// Equally spaced acknowledgements of one flow.
  struct AckTrain {
    Time at = 0, gap = 0;
    std::uint32_t count = 0;
    Time last() const { return at + (count - 1) * gap; }
  };
  struct FlowState {
    std::uint64_t tie_order = 0;
    std::uint32_t hops = 0;
    std::uint32_t remaining = 0;  // packets not yet offered; also the number of the next one
    std::uint32_t unacked = 0;    // offered packets whose acks have not been taken from `acks`
    bool live = false, uses_cc = false, counts_acks = false;
    bool at_nic = false;   // a packet of the flow is offered, waits or is being sent at the NIC
    bool blocked = false;  // by its window, until the next ack
    std::array<std::uint32_t, kMaxHops> path{};
    std::int64_t last_bytes = 0;  // size of packet number 1, the last
    Time ack_ps = 0;
    Time next_packet_at = 0;     // earliest start of the next packet (pacing)
    Time offered_at = kNever;    // arrival at the NIC of the packet last offered
    Time departs_at = kNever;    // end of the transmission at the NIC, if there is one
    Time delivered_at = kNever;  // arrival of the last packet, once it is on its last link
    Time last_cnp = 0;           // when the receiver last sent a CNP
    Time wake_at = kNever;       // next wake-up in the current visit
    P sender;
  };
  struct Flow : FlowState {
    Fifo<AckTrain> acks;
    Fifo<Time> cnps;
  };

  /// (time, slot), in a heap with the earliest first.
  using Timed = std::pair<Time, std::uint32_t>;
  static void push_heap(std::vector<Timed>& heap, const Timed& item);
  static Timed pop_heap(std::vector<Timed>& heap);

  // The calendar: the ports to visit in each slice. Near slices are in a ring, later ones in a heap.
  static constexpr std::int64_t kRingSlices = 64;
  std::int64_t slice_of(Time at) const {
    return at < slice_end_ ? current_slice_ : at < slice_end_ + slice_width_ ? current_slice_ + 1 : at / slice_width_;
  }
  void schedule(std::uint32_t port, Time at) { schedule_in_slice(port, slice_of(at)); }
  void schedule_in_slice(std::uint32_t port, std::int64_t slice);
  void clear_calendar();
  void set_time(Time now);
  void jump_to(Time to);
  void refill_ring();
  void visit_until(Time end);
  bool idle() const { return ring_count_ == 0 && later_.empty(); }

  std::uint32_t acquire_slot() { return network::acquire_slot(free_, flows_, spare_flows_); }
  void set_up(Flow& flow, const Route& route, std::uint64_t tie_order);
  std::int64_t bytes_of(const PacketTrain& run) const {
    return run.first == 1 ? flows_[run.slot].last_bytes : packet_bytes_;
  }
  Time sending_ps(const Port& port, const PacketTrain& run) const {
    if (run.first != 1 || flows_[run.slot].last_bytes == packet_bytes_) return port.full_packet_ps;
    return serialization_ps(flows_[run.slot].last_bytes, port.spec.bits_per_second);
  }
  /// Orders arrivals at one port by time, then by tie order.
  bool before(const PacketTrain& a, const PacketTrain& b) const {
    return a.at != b.at ? a.at < b.at : flows_[a.slot].tie_order < flows_[b.slot].tie_order;
  }
  static PacketTrain take_front(PacketTrain& run, std::uint32_t count);

  void visit(std::uint32_t index);
  void collect_arrivals(Port& port);
  void sort_inbox();
  void reposition(std::size_t from);
  void reschedule(std::uint32_t index);
  Time unpaused_at(Port& port, Time at) const;

  // Ports without senders: trains in, trains out.
  void visit_switch(Port& port);
  void serve(Port& port, PacketTrain run);
  std::uint32_t send_burst(Port& port, PacketTrain run, Time from);
  void enqueue(Port& port, const PacketTrain& run);
  void begin_marking(const Port& port);
  void mark_if_queued(Port& port, PacketTrain& packet);
  bool mark(Port& port, std::int64_t waiting);
  void send(const Port& port, PacketTrain run);
  void leave_network(const PacketTrain& run);
  void serve_delayed(Port& port, PacketTrain run, Time begins, Time sending);
  Port& ingress_of(const PacketTrain& run);
  void change(const PacketTrain& run, std::int64_t sign);
  void update_pfc();
  void update_pfc_in_order(Port& port, std::uint32_t index);

  // Ports with senders: packet by packet.
  void visit_senders(Port& port);
  void visit_sender(Port& port, std::uint32_t slot);
  void send_offered(Port& port, std::uint32_t slot, Time at);
  PacketTrain take_offered(std::uint32_t slot);
  void wake(Flow& flow, Time at);
  void offer(Flow& flow, Time at);
  void add_ack(Flow& flow, const AckTrain& acks);
  void process_acks(Flow& flow, Time at);
  Time next_wake(const Flow& flow) const;
  void schedule_wake(std::uint32_t slot);
  Time next_event_at(const Port& port, Time after) const;
  void arrive_all(Port& port, Time at);
  void arrive(Port& port, PacketTrain packet, Time at);
  void serve_head(Port& port, Time at);
  void transmit(Port& port, const PacketTrain& packet, Time at);
  void flush(Port& port);

  /// Returns whether slices of this link's latency would be shorter than a packet, so that they do not pay off.
  bool latency_too_short(const LinkSpec& spec) const {
    return spec.latency_ps < serialization_ps(packet_bytes_, spec.bits_per_second);
  }
  void set_slice_width(Time width);
  void switch_to_event_driven();
  /// Copies the state at now(), after the first phase of that instant, into a packet engine. Its counters include that
  /// phase; those of this engine do not.
  void export_state(PacketEngine<P>& snapshot);
  void import_state(const PacketEngine<P>& from);

  Time now_ = 0, last_activity_ = 0;
  Time pfc_until_ = 0;                    // latest time at which a pause or resume takes effect
  std::int64_t pausing_ingresses_ = 0;    // ingress links with pause_wanted
  Time slice_width_ = kNever;             // length of a slice
  std::int64_t current_slice_ = 0;        // number of the current slice
  Time slice_end_ = kNever;               // end of the current slice
  Time visited_until_ = 0;                // time within it up to which all ports have been visited
  Time visit_begin_ = 0, visit_end_ = 0;  // interval of the current visit
  std::uint64_t round_ = 0;               // number of the current round of visits
  std::array<std::vector<std::uint32_t>, kRingSlices> ring_;
  std::int64_t ring_count_ = 0;
  std::vector<std::pair<std::int64_t, std::uint32_t>> later_;  // (slice, port), a heap
  std::vector<Port> ports_, spare_ports_;
  std::vector<Flow> flows_, spare_flows_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
  std::vector<Timed> completions_;  // heap of the deliveries of last packets
  std::vector<std::uint32_t> visiting_, touched_ingresses_;

  // State of one visit.
  std::vector<PacketTrain> arrivals_;
  std::size_t next_arrival_ = 0;  // next of the arrivals at a port with senders
  std::vector<Timed> wakes_;
  std::vector<std::uint32_t> offered_;
  PacketTrain outgoing_;
  bool port_blocked_ = false, marking_ = false;
  std::int64_t marking_bytes_ = 0;
  std::vector<TimedBytes> transmissions_;
  std::size_t next_transmission_ = 0;
  std::vector<TimedBytes> unrolled_deltas_;

  Counters counters_;
  PacketEngine<P> event_driven_;  // converts states for save() and load()
  bool delegates_ = false;        // event_driven_ simulates in place of this engine
};

}  // namespace manyworlds::core::network
