// The packet engine without an event queue, for protocols that need no acknowledgement one by one: the same
// picoseconds, counters and saved words as packet_engine.hpp, whose rules these are.
//
// Nothing passes from one port to another in less than the least latency of the links. So time is cut into slices of
// that length: what a port does in one follows from what was sent before it, and the ports that have anything to do are
// visited one after the other in any order. What passes between them are runs of packets (first time, gap, count). A
// slice may be cut short anywhere: where the state is wanted as it is at an instant.
//
// The last packet of a flow begins its last link more than a slice before it is delivered, so the completions of the
// coming slice are known before its ports are visited: run() goes from one to the next and flows may start there.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/network/event_driven/packet_engine.hpp"

namespace manyworlds::core::network {

/// What the sliced engine can do without.
template <class P>
concept SlicedProtocol = Protocol<P> && !P::kWants.acks && !P::kWants.telemetry;

template <Protocol P>
class SlicedExchange;

template <SlicedProtocol P>
class SlicedEngine final : public PinnedEngine<P> {
 public:
  SlicedEngine(const Transport& transport, const typename P::Parameters& parameters, bool marks);

  void reset() override;
  std::uint32_t add_link(const LinkSpec& spec) override;
  std::uint32_t start(const Route& route, std::int64_t bytes, std::uint64_t order) override;
  void run(Time limit, std::vector<std::uint32_t>& completed) override;
  PauseWaits standstill() const override;
  Time now() const override { return by_packets_ ? packets_.now() : now_; }
  Time quiet_since() const override {
    return by_packets_ ? packets_.quiet_since() : std::max(quiet_since_, std::min(now_, control_until_));
  }
  bool drained() const override {
    return by_packets_ ? packets_.drained() : live_ == 0 && pausing_ == 0 && now_ >= control_until_;
  }
  /// Complete when no flow is live and after save(); in between they may lag by the slice at hand.
  const Counters& counters() const override { return by_packets_ ? packets_.counters() : counters_; }
  std::vector<SavedPart> save() override;
  void load(std::span<const std::uint64_t> words, std::span<const std::uint64_t> orders,
            std::vector<std::uint32_t>& flow_slots, std::vector<std::uint32_t>& link_slots) override;
  void set_order(std::uint32_t flow_slot, std::uint64_t order) override;
  std::unique_ptr<Engine> clone() const override { return std::make_unique<SlicedEngine>(*this); }

 private:
  using Pinned = PinnedEngine<P>;
  using Pinned::acks_matter, Pinned::fits;
  using Pinned::transport_, Pinned::parameters_, Pinned::packet_bytes_, Pinned::marks_;

  friend class SlicedExchange<P>;

  /// Packets of one flow at one port: when they come, or came; there `at` means nothing any more. The last packet of a
  /// flow has a size of its own and is always alone.
  struct Run {
    Time at = 0, gap = 0;     // of the first, and from each to the next
    std::uint32_t slot = 0;   // of the flow
    std::uint32_t first = 0;  // number of the first; they go down to 1, the last of the flow
    std::uint32_t count = 0;
    std::uint16_t hop = 0;
    bool marked = false;
    Time last() const { return at + (count - 1) * gap; }
  };
  struct Toggle {
    Time at = 0;
    bool pause = false;
  };
  /// Bytes that begin (or cease, if negative) to wait in a switch, of one incoming link.
  struct Change {
    Time at = 0, gap = 0;
    std::int64_t bytes = 0;  // each time
    std::uint32_t count = 0;
  };
  struct Begun {
    Time at = 0;
    std::int64_t bytes = 0;
  };

  struct Port {
    LinkSpec spec;
    Time full_packet_ps = 0, control_ps = 0;  // a full packet; until a pause frame sent against this link takes effect
    std::int64_t kmin = 0, kmax = 0;
    Time free_at = 0;                // what is being sent is gone then
    std::int64_t waiting_bytes = 0;  // in the queue
    std::int64_t ingress_bytes = 0;  // came over this link and wait in the switch behind it
    std::int64_t slice_bytes = 0;    // no more than this comes over it in a slice
    std::int64_t mark_error = 0;     // RED by error diffusion, parts per million
    std::uint64_t listed = 0;        // bit by slice
    std::uint64_t touched_in = 0;    // the round in which its ingress last changed
    bool paused = false, pause_wanted = false;
    bool may_pause = false;  // in that round: the order of the changes matters
    Fifo<Run> queue;
    std::vector<Run> inbox;  // not arrived
    Fifo<Toggle> toggles;    // pauses and resumes on their way
    std::vector<Change> changes;
    std::int64_t added = 0;              // sum of those that add
    std::vector<std::uint32_t> senders;  // flows whose first link it is, until their last packet has left it
  };

  struct AckRun {
    Time at = 0, gap = 0;
    std::uint32_t count = 0;
    Time last() const { return at + (count - 1) * gap; }
  };
  struct FlowState {
    std::uint64_t order = 0;
    std::uint32_t hops = 0;
    std::uint32_t left = 0;     // packets not yet offered; the next one carries this number
    std::uint32_t unacked = 0;  // offered, and not among the acks taken from `acks`
    bool live = false, managed = false, counts_acks = false;
    bool at_nic = false;   // a packet is offered, waits or is being sent there
    bool blocked = false;  // by its window
    std::array<std::uint32_t, kMaxHops> path{};
    std::int64_t last_bytes = 0;  // size of packet number 1
    Time ack_ps = 0;
    Time next_packet_at = 0;     // pacing
    Time offered_at = kNever;    // the packet that arrives at the NIC then
    Time departs_at = kNever;    // the packet at the NIC, once it is being sent
    Time delivered_at = kNever;  // the last packet, once it is on its last link
    Time last_notice = 0;        // receiver: when it last told the sender of a mark
    Time wake_at = kNever;       // in the visit at hand
    P sender;
  };
  struct Flow : FlowState {
    Fifo<AckRun> acks;
    Fifo<Time> notices;
  };

  /// (time, what), earliest first in a heap.
  using Timed = std::pair<Time, std::uint32_t>;
  static void push_heap(std::vector<Timed>& heap, const Timed& what);
  static Timed pop_heap(std::vector<Timed>& heap);

  // The calendar: which ports must be visited in which slice. What is near is in a ring, the rest in a heap.
  static constexpr std::int64_t kRing = 64;
  std::int64_t slice_of(Time at) const {
    return at < horizon_ ? slice_ : at < horizon_ + width_ ? slice_ + 1 : at / width_;
  }
  void list(std::uint32_t port, Time at) { list_in(port, slice_of(at)); }
  void list_in(std::uint32_t port, std::int64_t slice);
  void clear_calendar();
  void set_time(Time now);
  void leap(Time to);
  void take_later();
  void visit_until(Time end);
  bool idle() const { return in_ring_ == 0 && later_.empty(); }

  std::uint32_t take_slot() { return network::take_slot(free_, flows_, spare_flows_); }
  void set_up(Flow& flow, const Route& route, std::uint64_t order);
  std::int64_t bytes_of(const Run& run) const { return run.first == 1 ? flows_[run.slot].last_bytes : packet_bytes_; }
  Time sending_ps(const Port& port, const Run& run) const {
    if (run.first != 1 || flows_[run.slot].last_bytes == packet_bytes_) return port.full_packet_ps;
    return serialization_ps(flows_[run.slot].last_bytes, port.spec.bits_per_second);
  }
  /// Arrivals at one port: time, then order.
  bool before(const Run& a, const Run& b) const {
    return a.at != b.at ? a.at < b.at : flows_[a.slot].order < flows_[b.slot].order;
  }
  static Run first_of(Run& run, std::uint32_t count);

  void visit(std::uint32_t index);
  void take_inbox(Port& port);
  void sort_inbox();
  void keep_order(std::size_t from);
  void relist(std::uint32_t index);
  Time clear_from(Port& port, Time at) const;

  // A port of a switch: runs in, runs out.
  void visit_switch(Port& port);
  void serve(Port& port, Run run);
  std::uint32_t burst(Port& port, Run run, Time from);
  void keep(Port& port, const Run& run);
  void begin_marking(const Port& port);
  void note_waiting(Port& port, Run& packet);
  bool mark(Port& port, std::int64_t waiting);
  void send(const Port& port, Run run);
  void leave_network(const Run& run);
  void serve_later(Port& port, Run run, Time begins, Time sending);
  Port& ingress_of(const Run& run);
  void change(const Run& run, std::int64_t sign);
  void settle_pauses();
  void settle_in_order(Port& port, std::uint32_t index);

  // A port with senders: packet by packet.
  void visit_senders(Port& port);
  void visit_sender(Port& port, std::uint32_t slot);
  void send_offered(Port& port, std::uint32_t slot, Time at);
  Run offered_by(std::uint32_t slot);
  void wake(Flow& flow, Time at);
  void offer(Flow& flow, Time at);
  void add_ack(Flow& flow, const AckRun& acks);
  void take_acks(Flow& flow, Time at);
  Time wake_of(const Flow& flow) const;
  void expect(std::uint32_t slot);
  Time next_in(const Port& port, Time after) const;
  void arrive_all(Port& port, Time at);
  void arrive(Port& port, Run packet, Time at);
  void serve_head(Port& port, Time at);
  void transmit(Port& port, const Run& packet, Time at);
  void flush(Port& port);

  /// Slices that would be shorter than a packet are no gain.
  bool too_short(const LinkSpec& spec) const {
    return spec.latency_ps < serialization_ps(packet_bytes_, spec.bits_per_second);
  }
  void use_width(Time width);
  void use_packets();
  /// This engine as it is at now(), the first half of that instant over, in a packet engine; counted there only.
  void settle(PacketEngine<P>& through);
  void take_back(const PacketEngine<P>& from);

  Time now_ = 0, quiet_since_ = 0;
  Time control_until_ = 0;    // when the last pause or resume takes effect
  std::int64_t pausing_ = 0;  // ingresses that want a pause
  Time width_ = kNever;       // of a slice
  std::int64_t slice_ = 0;    // the one at hand
  Time horizon_ = kNever;     // its end
  Time visited_ = 0;          // up to which, in it, all ports were visited
  Time begin_ = 0, end_ = 0;  // of the visit at hand
  std::uint64_t round_ = 0;   // of visits
  std::array<std::vector<std::uint32_t>, kRing> ring_;
  std::int64_t in_ring_ = 0;
  std::vector<std::pair<std::int64_t, std::uint32_t>> later_;  // (slice, port), a heap
  std::vector<Port> ports_, spare_ports_;
  std::vector<Flow> flows_, spare_flows_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
  std::vector<Timed> ends_;  // deliveries of last packets: a heap
  std::vector<std::uint32_t> visiting_, touched_;

  // Of one visit.
  std::vector<Run> in_;
  std::size_t next_in_ = 0;  // of those, for ports with senders
  std::vector<Timed> wakes_;
  std::vector<std::uint32_t> offered_;
  Run out_;
  bool stuck_ = false, marking_ = false;
  std::int64_t marking_bytes_ = 0;
  std::vector<Begun> begun_;
  std::size_t gone_ = 0;
  std::vector<Begun> flat_;

  Counters counters_;
  PacketEngine<P> packets_;  // for states going out and coming in
  bool by_packets_ = false;  // it does all the work
};

}  // namespace manyworlds::core::network
