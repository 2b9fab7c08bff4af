// EQDS, a receiver-driven transport over trimming switches: Olteanu et al., "An edge-queued datagram service for all
// datacenter traffic", NSDI 2022, sections 3 and 4, after NDP (Handley et al., SIGCOMM 2017).
//
// A sender begins with a speculative window; all further packets are pulled, and a receiver paces its pulls at just
// below its line rate over all its senders. A packet that does not fit a queue arrives as a header; it is refused, sent
// again when a pull comes, and such senders are pulled first. Packets spray over `paths` ways in an order that changes
// from round to round; a way that trimmed is left out once.
//
// Against the public implementation (csg-htsim, sim/eqds.cpp): credits count packets, not bytes (a pull is worth one
// full packet, at 0.99 of the line rate; there 4,096 B at about 0.985); a sender whose refused packets are all pulled
// again goes back among those that are pulled in turn; a receiver stops pulling for a transfer that is complete.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/network/engine/fifo.hpp"
#include "core/network/per_packet/bit_window.hpp"
#include "core/network/per_packet/network.hpp"

namespace manyworlds::core::network::individual {

struct EqdsParameters {
  std::int64_t payload_bytes = 4096;
  std::uint64_t seed = 1;
  std::uint32_t window_packets =
      50;                     // sent unasked; asked for beyond what was pulled; pulled beyond what was asked for
  std::uint32_t paths = 128;  // a power of two, at most 256
  std::uint32_t packets_per_ack = 4;  // besides the first packet and the one that completes the transfer
  Time least_timeout = 67 * kMicrosecond;
};

class Eqds {
 public:
  using Ports = TrimmingPorts;

  Eqds(const NetworkOptions& options, const EqdsParameters& parameters, std::shared_ptr<Forwarding> forwarding);

  /// From one GPU to another; throws InputError if there is no way. Returns its number.
  std::uint32_t add_route(std::uint32_t source, std::uint32_t destination);
  /// The same between the ends of a path.
  std::uint32_t add_route(const network::Route& there, const network::Route& back);
  /// A transfer begins now; `order` (< 2^53) ranks it in ties, `entropy` goes into its hashed decisions. Returns its
  /// slot, which is used again when nothing of the transfer is left.
  std::uint32_t start(std::uint32_t route, std::int64_t bytes, std::uint64_t order, std::uint64_t entropy);
  void run(Time limit, std::vector<std::uint32_t>& completed);

  Time now() const { return network_.now(); }
  bool drained() const { return live_ == 0 && network_.quiet(); }
  const Network& network() const { return network_; }
  /// From now on keeps (order, when the sender knew that all had arrived) of every transfer.
  void keep_acknowledgements() { keeps_acknowledgements_ = true; }
  const std::vector<std::pair<std::uint64_t, Time>>& acknowledgements() const { return acknowledgements_; }
  std::size_t bytes() const;

  // What the network tells its endpoint.
  std::size_t completions() const { return completed_ == nullptr ? 0 : completed_->size(); }
  void deliver(std::uint32_t packet);
  void departed(std::uint32_t slot);
  void pace(std::uint32_t pacer);
  void timer(std::uint32_t slot);
  void feedback(std::uint32_t) {}
  void notice(std::uint32_t) {}

 private:
  struct Flow {
    std::uint64_t order = 0, hash = 0;
    std::uint32_t route = 0;
    std::uint32_t packets = 0, last_bytes = 0;
    // Sender
    std::uint32_t next = 0;         // packet never sent
    std::uint32_t speculative = 0;  // credit it was born with
    std::uint32_t credit = 0;       // pulled and not used
    std::uint32_t pulled = 0;       // highest pull heard of
    std::uint32_t round = 0;        // of the paths
    std::uint16_t path_at = 0, path_mask = 0;
    bool at_nic = false, done = false, timer_pending = false;
    std::array<std::uint64_t, 4> penalised{};  // by path
    Time heard_at = 0, timeout = 0;
    BitWindow refused;  // to be sent again; its base is what was acknowledged
    // Receiver
    BitWindow received;                // its base is the first missing packet
    std::uint32_t unacknowledged = 0;  // packets since the last acknowledgement
    std::uint32_t target = 0;          // pulls the sender asked for in all
    std::uint32_t pulls = 0;           // pulls it got
    std::uint32_t to_repeat = 0;       // of its pulls, for refused packets
    std::uint32_t entries = 0;         // among the pacer's
    bool repeating = false, active = false, complete = false;
  };
  struct Route {
    std::uint32_t source = 0, destination = 0, pacer = 0;
    std::vector<std::uint32_t> there, back;  // links out of the NICs at both ends
  };
  /// A receiver's turn-taking over its senders.
  struct Pacer {
    Fifo<std::uint32_t> repeating, active, idle;
    Time interval = 0;
    bool running = false;
  };

  void send(std::uint32_t slot);
  std::uint16_t next_path(Flow& flow);
  void answer(const Flow& flow, std::uint32_t packet, PacketKind kind, std::uint32_t value);
  void receive(Flow& flow, std::uint32_t packet);
  void hear(Flow& flow, std::uint32_t packet);
  void ask(Flow& flow, std::uint32_t slot, std::uint32_t target);
  void repeat(Flow& flow, std::uint32_t slot);
  void enlist(Flow& flow, Fifo<std::uint32_t>& list, std::uint32_t slot);
  void pull(Flow& flow, std::uint32_t slot);
  void settle(std::uint32_t slot);
  std::uint32_t pacer_of(std::uint32_t destination, LinkKind kind);

  EqdsParameters parameters_;
  std::shared_ptr<Forwarding> forwarding_;
  Network network_;
  std::vector<Route> routes_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_;
  std::vector<Pacer> pacers_;
  std::vector<std::uint32_t> pacer_of_;  // by destination and kind of link
  std::size_t live_ = 0;
  bool keeps_acknowledgements_ = false;
  std::vector<std::pair<std::uint64_t, Time>> acknowledgements_;
  std::vector<std::uint32_t>* completed_ = nullptr;
};

}  // namespace manyworlds::core::network::individual
