// EQDS, a receiver-driven transport over trimming switches: Olteanu et al., "An edge-queued datagram service for all
// datacenter traffic", NSDI 2022, sections 3 and 4, after NDP (Handley et al., SIGCOMM 2017).
//
// A sender begins with a speculative window; all further packets are pulled, and a receiver paces the pulls of all its
// senders together at just below its line rate. A packet that does not fit a queue arrives as a trimmed header; the
// receiver answers with a NACK, the sender retransmits the packet when a pull arrives, and the receiver pulls senders
// with such packets first. Packets are sprayed over `paths` paths in an order that changes from round to round; a path
// that trimmed a packet is skipped once.
//
// Differences from the public implementation (csg-htsim, sim/eqds.cpp): credits count packets, not bytes (a pull is
// worth one full packet, at 0.99 of the line rate; there 4,096 B at about 0.985); a sender whose trimmed packets have
// all been pulled again returns to the round robin of active senders; a receiver stops pulling for a complete transfer.
// A sender that stops sending speculatively with packets left that it has not asked pulls for sends a request. There a
// transfer shorter than the window asks for a negative number, which is unsigned, so that it is pulled without end;
// without either, such a sender would wait for its timeout.
//
// Once links that fail have lost packets, a sender that has heard nothing for its timeout sends all again that has not
// arrived, as the receiver's acknowledgements list what has (the public implementation has a bitmap in them); before
// that, the oldest.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/network/engine/fifo.hpp"
#include "core/network/per_packet/bit_window.hpp"
#include "core/network/per_packet/network.hpp"

namespace manyworlds::core::network::per_packet {

struct EqdsParameters {
  std::int64_t payload_bytes = 4096;
  std::uint64_t seed = 1;
  std::uint32_t window_packets = 50;  // speculative window, and the limit of requests beyond pulls and vice versa
  std::uint32_t paths = 128;          // a power of two, at most 256
  std::uint32_t packets_per_ack = 4;  // the first and the completing packet are always acknowledged at once
  Time min_timeout = 67 * kMicrosecond;
};

class Eqds {
 public:
  using PortPolicy = TrimmingPortPolicy;

  Eqds(const NetworkOptions& options, const EqdsParameters& parameters, std::shared_ptr<ForwardingTables> forwarding);

  /// Adds a route from one GPU to another and returns its number. Throws InputError if no path exists.
  std::uint32_t add_route(std::uint32_t source, std::uint32_t destination);
  /// Adds a route between the two ends of `there`; `back` is not used.
  std::uint32_t add_route(const network::Route& there, const network::Route& back);
  /// Starts a transfer now. `tie_order` (< 2^53) breaks ties, `entropy` seeds its hashed decisions. Returns its slot,
  /// which is reused when no packet, timer or list entry of the transfer is left.
  std::uint32_t start(std::uint32_t route, std::int64_t bytes, std::uint64_t tie_order, std::uint64_t entropy);
  void run(Time limit, std::vector<std::uint32_t>& completed);

  Time now() const { return network_.now(); }
  bool drained() const { return live_ == 0 && network_.is_idle(); }
  const Network& network() const { return network_; }
  /// Records from now on (tie order, time at which the sender knew that all packets had arrived) of every transfer.
  void record_acknowledgements() { records_acknowledgements_ = true; }
  const std::vector<std::pair<std::uint64_t, Time>>& acknowledgements() const { return acknowledgements_; }
  std::size_t bytes() const;

  // As PerPacketEngine has them. Senders have timeouts of their own.
  void expect_failures(Time) {}
  void fail(std::uint32_t link) { network_.fail<PortPolicy>(link); }
  void reroute(std::shared_ptr<ForwardingTables> forwarding,
               const std::vector<std::pair<network::Route, network::Route>>& routes, bool avoid_all);

  // Callbacks of Network::run().
  std::size_t completions() const { return completed_ == nullptr ? 0 : completed_->size(); }
  void deliver(std::uint32_t packet);
  void departed(std::uint32_t slot);
  void pace(std::uint32_t pacer);
  void timer(std::uint32_t slot);
  void feedback(std::uint32_t) {}
  void cnp(std::uint32_t) {}
  void lost(std::uint32_t packet);

 private:
  struct Flow {
    std::uint64_t tie_order = 0, hash = 0;
    std::uint32_t route = 0;
    std::uint32_t packets = 0, last_bytes = 0;
    // Sender
    std::uint32_t next = 0;                // first packet never sent
    std::uint32_t speculative_credit = 0;  // unused part of the initial credit
    std::uint32_t credit = 0;              // packets pulled and not sent yet
    std::uint32_t pulled = 0;              // highest pull number received
    std::uint32_t asked = 0;               // pulls requested in total, as far as sent
    std::uint32_t round = 0;               // number of the pass over the paths
    std::uint16_t path_position = 0, path_mask = 0;
    bool at_nic = false, all_acknowledged = false, timer_pending = false;
    std::array<std::uint64_t, 4> penalised{};  // a bit for each path: to be skipped once
    Time last_heard_at = 0, timeout = 0;
    BitWindow trimmed;  // trimmed packets to be retransmitted; its base is the cumulative acknowledgement
    // Receiver
    BitWindow received;                      // its base is the first missing packet
    std::uint32_t unacknowledged = 0;        // packets since the last acknowledgement
    std::uint32_t target = 0;                // pulls that the sender requested in total
    std::uint32_t pulls = 0;                 // pulls sent to it so far
    std::uint32_t retransmission_pulls = 0;  // pulls owed to it for trimmed packets
    std::uint32_t entries = 0;               // entries in the lists of the pacer
    bool retransmitting = false, active = false, complete = false;
  };
  struct Route {
    std::uint32_t source = 0, destination = 0, pacer = 0;
    std::vector<std::uint32_t> there, back;  // possible first links in both directions
  };
  /// The pull pacer of a receiver: one list of senders (slots) per priority, each served round robin.
  struct Pacer {
    Fifo<std::uint32_t> retransmitting, active, idle;
    Time interval = 0;
    bool running = false;
  };

  void send(std::uint32_t slot);
  std::uint32_t target_of(const Flow& flow) const;
  void ask(std::uint32_t slot, std::uint32_t target);
  std::uint16_t next_path(Flow& flow);
  void reply(const Flow& flow, std::uint32_t packet, PacketKind kind, std::uint32_t value);
  void receive(Flow& flow, std::uint32_t packet);
  void process_feedback(Flow& flow, std::uint32_t packet);
  void request_pulls(Flow& flow, std::uint32_t slot, std::uint32_t target);
  void request_retransmission(Flow& flow, std::uint32_t slot);
  void enlist(Flow& flow, Fifo<std::uint32_t>& list, std::uint32_t slot);
  void pull(Flow& flow, std::uint32_t slot);
  void miss_all(std::uint32_t slot);
  void free_if_finished(std::uint32_t slot);
  std::uint32_t pacer_of(std::uint32_t destination, LinkKind kind);
  void set_interval(std::uint32_t pacer, std::uint32_t destination, LinkKind kind);

  EqdsParameters parameters_;
  std::shared_ptr<ForwardingTables> forwarding_;
  Network network_;
  std::vector<Route> routes_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_;
  std::vector<Pacer> pacers_;
  std::vector<std::uint32_t> pacer_of_;  // indexed by destination and kind of link
  std::size_t live_ = 0;
  bool records_acknowledgements_ = false;
  std::vector<std::pair<std::uint64_t, Time>> acknowledgements_;
  std::vector<std::uint32_t>* completed_ = nullptr;
};

}  // namespace manyworlds::core::network::per_packet
