// Senders with congestion control over packets as individuals: every protocol of protocol.hpp, on fabrics that pause or
// drop, with acknowledgements as packets or as delay, over paths that change from packet to packet.
//
// A NIC is offered one packet of each transfer at a time. On a lossless fabric each packet comes once. On a lossy one a
// packet counts as lost when one that left `reordering` or more packets later was acknowledged (once per packet:
// Blanton et al., RFC 6675, with packets for bytes), or when nothing came back for a timeout; lost packets go again one
// by one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/network/engine/protocol.hpp"
#include "core/network/per_packet/bit_window.hpp"
#include "core/network/per_packet/network.hpp"

namespace manyworlds::core::network::individual {

/// How a sender picks the path of a packet.
enum class Spread : std::uint8_t { per_flow, per_packet, per_flowlet };

struct ManagedOptions {
  std::int64_t payload_bytes = 4096;
  std::uint64_t seed = 1;
  std::int64_t scale_up_window_bytes = 1 << 20;  // of transfers inside a scale-up domain, which no protocol manages
  bool acks_in_band = false;
  Spread spread = Spread::per_packet;
  Time flowlet_gap = 10 * kMicrosecond;  // of silence at the NIC, after which a new path is drawn
  std::uint32_t reordering = 64;         // packets
  Time least_timeout = 100 * kMicrosecond;
};

template <Protocol P>
class Managed {
 public:
  using Ports = PortsAsGiven;

  Managed(const NetworkOptions& network, const ManagedOptions& options, const typename P::Parameters& parameters,
          std::shared_ptr<Forwarding> forwarding)
      : options_(options),
        parameters_(parameters),
        forwarding_(std::move(forwarding)),
        network_(network, forwarding_) {}

  /// From one GPU to another; throws InputError if there is no way. Returns its number.
  std::uint32_t add_route(std::uint32_t source, std::uint32_t destination);
  /// The same between the ends of a path, which pinned packets take; what comes back takes `back`.
  std::uint32_t add_route(const network::Route& there, const network::Route& back);
  /// A transfer begins now; `order` (< 2^53) ranks it in ties, `entropy` goes into its hashed decisions. Returns its
  /// slot, which is used again when nothing of the transfer is left.
  std::uint32_t start(std::uint32_t route, std::int64_t bytes, std::uint64_t order, std::uint64_t entropy);
  void run(Time limit, std::vector<std::uint32_t>& completed);

  /// From now on keeps (order, when the sender had every acknowledgement) of transfers acknowledged in band. Not on a
  /// lossy fabric, where senders stop as soon as all has arrived and the last acknowledgements may be lost.
  void keep_acknowledgements() { keeps_acknowledgements_ = true; }
  const std::vector<std::pair<std::uint64_t, Time>>& acknowledgements() const { return acknowledgements_; }

  Time now() const { return network_.now(); }
  bool drained() const { return live_ == 0 && network_.quiet(); }
  const Network& network() const { return network_; }

  // What the network tells its endpoint.
  std::size_t completions() const { return completed_ == nullptr ? 0 : completed_->size(); }
  void deliver(std::uint32_t packet);
  void departed(std::uint32_t slot);
  void feedback(std::uint32_t packet) { acknowledge(packet); }
  void notice(std::uint32_t slot);
  void timer(std::uint32_t slot);
  void pace(std::uint32_t slot);

 private:
  struct Route {
    std::uint32_t source = 0, destination = 0;
    std::vector<std::uint32_t> there, back;  // links out of the NICs at both ends
    std::uint32_t pinned_there = 0, pinned_back = 0;
    bool managed = false;
    PathFacts facts;
    Time ack_ps = 0;
  };
  struct Flow {
    std::uint64_t order = 0, hash = 0;
    std::uint32_t route = 0;
    std::uint32_t packets = 0, last_bytes = 0;
    // Sender
    std::uint32_t next = 0;     // packet never sent
    std::uint32_t unacked = 0;  // sent and neither acknowledged nor lost
    std::uint32_t flowlet = 0;
    std::uint32_t answered = 0;  // acknowledgements that came
    Time next_packet_at = 0, left_at = 0, heard_at = 0, timeout = 0;
    Time timer_at = kNever;      // the next deadline for which an event is pending
    Time pace_at = 0;            // the next packet for which one is
    Time told_until = 0;         // losses before this are of a round trip that the protocol was told of
    std::uint32_t pending = 0;   // events of any kind
    std::uint32_t examined = 0;  // packets below this counted as lost once if they had not been acknowledged
    bool live = false, at_nic = false, blocked = false;
    P sender;
    BitWindow flying, lost;  // on lossy fabrics; their base is the first packet not acknowledged
    BitWindow acked;
    // Receiver
    std::uint32_t received = 0;  // packets
    BitWindow arrived;           // on lossy fabrics
    Time last_notice = 0;
  };

  bool lossy() const { return network_.options().ports != PortKind::lossless; }
  std::int64_t packet_bytes() const { return network_.options().full_packet_bytes; }
  bool fits(const Flow& flow) const {
    const std::int64_t window =
        routes_[flow.route].managed ? flow.sender.window_bytes() : options_.scale_up_window_bytes;
    return flow.unacked == 0 || (flow.unacked + std::int64_t{1}) * packet_bytes() <= window;
  }
  bool sent_all(const Flow& flow) const { return flow.next == flow.packets && flow.lost.count() == 0; }
  Time timeout_of(const Flow& flow) const {
    return std::max(options_.least_timeout, 4 * routes_[flow.route].facts.base_rtt_ps);
  }
  void describe(Route& route, std::uint32_t link);
  void offer(std::uint32_t slot);
  void aim(Flow& flow, Packet& packet);
  void acknowledge(std::uint32_t packet);
  void learn(Flow& flow, std::uint32_t number);
  void lose(Flow& flow, std::uint32_t number);
  void arm(Flow& flow, std::uint32_t slot, Time at);
  void settle(std::uint32_t slot);

  ManagedOptions options_;
  typename P::Parameters parameters_;
  std::shared_ptr<Forwarding> forwarding_;
  Network network_;
  std::vector<Route> routes_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
  bool keeps_acknowledgements_ = false;
  std::vector<std::pair<std::uint64_t, Time>> acknowledgements_;
  std::vector<std::uint32_t>* completed_ = nullptr;
};

}  // namespace manyworlds::core::network::individual

#include "core/network/per_packet/managed_body.hpp"
