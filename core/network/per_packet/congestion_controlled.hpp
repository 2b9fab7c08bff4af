// The endpoint of the per-packet engine for congestion-controlled senders: every sender protocol, on lossless and lossy
// fabrics, with acknowledgements as packets or as delay, over pinned paths or paths that change from packet to packet.
//
// Each transfer has at most one packet at its NIC. On a lossless fabric each packet arrives exactly once. On a lossy
// one a packet counts as lost when one sent `reordering_packets` or more packets later was acknowledged (once per
// packet: Blanton et al., RFC 6675, with packets for bytes), or when nothing was received for a timeout; lost packets
// are retransmitted one by one (selective repeat).
//
// If links fail on a lossless fabric, what they lose is known to this endpoint, which stands for a NIC that keeps its
// packets until they are acknowledged. It sends a lost one again when it has heard nothing for SenderOptions'
// retransmit, which does not grow (the local ACK timeout of RoCE's queue pairs: InfiniBand Architecture Specification,
// volume 1, section 9.7.6), or when one sent `reordering_packets` or more packets later is acknowledged, as the
// receiver then asks for it. Without a timeout it does when routes avoid what has failed, a bound of all that may
// detect losses. Nothing is sent twice that has arrived and been acknowledged, and a pause is not taken for a loss.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/network/engine/sender_protocol.hpp"
#include "core/network/per_packet/bit_window.hpp"
#include "core/network/per_packet/network.hpp"

namespace manyworlds::core::network::per_packet {

/// The unit for which a sender draws a new path.
enum class PathGranularity : std::uint8_t { per_flow, per_packet, per_flowlet };

struct SenderOptions {
  std::int64_t payload_bytes = 4096;
  std::uint64_t seed = 1;
  std::int64_t scale_up_window_bytes = 1 << 20;  // window inside a scale-up domain, without congestion control
  bool acks_in_band = false;
  PathGranularity path_granularity = PathGranularity::per_packet;
  Time flowlet_gap = 10 * kMicrosecond;   // a gap of this length at the NIC begins a new flowlet
  std::uint32_t reordering_packets = 64;  // packets; the reordering tolerated before a packet counts as lost
  Time min_timeout = 100 * kMicrosecond;
};

template <SenderProtocol P>
class CongestionControlled {
 public:
  using PortPolicy = RuntimePortPolicy;

  CongestionControlled(const NetworkOptions& network, const SenderOptions& options,
                       const typename P::Parameters& parameters, std::shared_ptr<ForwardingTables> forwarding)
      : options_(options),
        parameters_(parameters),
        forwarding_(std::move(forwarding)),
        network_(network, forwarding_),
        may_lose_(lossy()) {}

  /// Adds a route from one GPU to another and returns its number. Throws InputError if no path exists.
  std::uint32_t add_route(std::uint32_t source, std::uint32_t destination);
  /// Adds a route between the two ends of `there`. Pinned packets take the links of `there`, their acknowledgements
  /// those of `back`.
  std::uint32_t add_route(const network::Route& there, const network::Route& back);
  /// Starts a transfer now. `tie_order` (< 2^53) breaks ties, `entropy` seeds its hashed decisions. Returns its slot,
  /// which is reused when no packet or event of the transfer is left.
  std::uint32_t start(std::uint32_t route, std::int64_t bytes, std::uint64_t tie_order, std::uint64_t entropy);
  void run(Time limit, std::vector<std::uint32_t>& completed);

  // As PerPacketEngine has them.
  void expect_failures(Time retransmit) {
    expects_failures_ = may_lose_ = true;
    retransmit_ = retransmit;
  }
  void fail(std::uint32_t link) {
    avoids_failures_ = false;
    network_.fail<PortPolicy>(link);
  }
  void reroute(std::shared_ptr<ForwardingTables> forwarding,
               const std::vector<std::pair<network::Route, network::Route>>& routes, bool avoid_all);

  /// Records from now on (tie order, time at which the sender had every acknowledgement) of transfers with in-band
  /// acknowledgements. Not where packets may be lost, as senders stop as soon as all data has arrived and the last
  /// acknowledgements may be lost.
  void record_acknowledgements() { records_acknowledgements_ = true; }
  const std::vector<std::pair<std::uint64_t, Time>>& acknowledgements() const { return acknowledgements_; }

  Time now() const { return network_.now(); }
  bool drained() const { return live_ == 0 && network_.is_idle(); }
  const Network& network() const { return network_; }

  // Callbacks of Network::run().
  std::size_t completions() const { return completed_ == nullptr ? 0 : completed_->size(); }
  void deliver(std::uint32_t packet);
  void departed(std::uint32_t slot);
  void feedback(std::uint32_t packet) { acknowledge(packet); }
  void cnp(std::uint32_t slot);
  void timer(std::uint32_t slot);
  void pace(std::uint32_t slot);
  void lost(std::uint32_t packet);

 private:
  struct Route {
    std::uint32_t source = 0, destination = 0;
    std::vector<std::uint32_t> there, back;  // possible first links in both directions
    std::uint32_t pinned_there = 0, pinned_back = 0;
    bool uses_cc = false;
    PathInfo facts;
    Time ack_ps = 0;
  };
  struct Flow {
    std::uint64_t tie_order = 0, hash = 0;
    std::uint32_t route = 0;
    std::uint32_t packets = 0, last_bytes = 0;
    // Sender
    std::uint32_t next = 0;     // first packet never sent
    std::uint32_t unacked = 0;  // packets in flight: neither acknowledged nor lost
    std::uint32_t flowlet = 0;
    std::uint32_t acks_received = 0;  // acknowledgements received
    Time next_packet_at = 0, last_departure_at = 0, last_heard_at = 0, timeout = 0;
    Time timer_at = kNever;                // the earliest pending timer event
    Time pace_at = 0;                      // the latest pace event scheduled
    Time losses_reported_until = 0;        // until then further losses are not reported to the protocol
    std::uint32_t pending = 0;             // pending events of any kind
    std::uint32_t loss_checked_below = 0;  // packets below this were already checked for loss by reordering
    bool live = false, at_nic = false, blocked = false;
    P sender;
    BitWindow outstanding,
        lost;  // where packets may be lost; in flight, to be retransmitted; base: first unacknowledged packet
    BitWindow acked;
    // Receiver
    std::uint32_t received = 0;  // packets
    BitWindow arrived;           // where packets may be lost; base: first missing packet
    Time last_cnp = 0;
  };

  bool lossy() const { return network_.options().ports != PortKind::lossless; }
  std::int64_t packet_bytes() const { return network_.options().full_packet_bytes; }
  bool fits_window(const Flow& flow) const {
    const std::int64_t window =
        routes_[flow.route].uses_cc ? flow.sender.window_bytes() : options_.scale_up_window_bytes;
    return flow.unacked == 0 || (flow.unacked + std::int64_t{1}) * packet_bytes() <= window;
  }
  bool sent_all(const Flow& flow) const { return flow.next == flow.packets && flow.lost.count() == 0; }
  Time timeout_of(const Flow& flow) const {
    return std::max(options_.min_timeout, 4 * routes_[flow.route].facts.base_rtt_ps);
  }
  void add_path_facts(Route& route, std::uint32_t link);
  void offer(std::uint32_t slot);
  void choose_path(Flow& flow, Packet& packet);
  void acknowledge(std::uint32_t packet);
  void process_ack(Flow& flow, std::uint32_t slot, std::uint32_t number);
  void declare_lost(Flow& flow, std::uint32_t number);
  void send_lost_again(std::uint32_t slot);
  void arm_timer(Flow& flow, std::uint32_t slot, Time at);
  void free_if_finished(std::uint32_t slot);

  SenderOptions options_;
  typename P::Parameters parameters_;
  std::shared_ptr<ForwardingTables> forwarding_;
  Network network_;
  std::vector<Route> routes_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
  bool may_lose_;  // packets: the fabric is lossy, or links will fail
  bool expects_failures_ = false, avoids_failures_ = true;
  Time retransmit_ = 0;                      // of lossless fabrics; 0: none
  std::map<std::uint32_t, BitWindow> gone_;  // of lossless fabrics, by slot: packets that failed links have lost
  bool records_acknowledgements_ = false;
  std::vector<std::pair<std::uint64_t, Time>> acknowledgements_;
  std::vector<std::uint32_t>* completed_ = nullptr;
};

}  // namespace manyworlds::core::network::per_packet

#include "core/network/per_packet/congestion_controlled_body.hpp"
