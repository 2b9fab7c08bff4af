// What a transport protocol is to the packet engines: the plain state of one sender and how it changes. A protocol is
// one file in transports/; engines are templates over it, so that nothing is called through a pointer per packet.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/base/units.hpp"

namespace manyworlds::core::network {

/// What a sender knows of its path when it starts.
struct PathFacts {
  std::int64_t line_bits_per_second = 0;  // of its NIC
  std::int64_t packet_bytes = 0;          // of a full packet, headers included
  Time base_rtt_ps = 0;                   // of a full packet and its acknowledgement, nothing queued
  std::uint32_t hops = 0;
};

/// One link as a packet found it when it began to leave it (in-band telemetry).
struct Telemetry {
  Time at = 0;                  // when the link began to send the packet
  std::int64_t waiting = 0;     // bytes that waited behind it
  std::int64_t sent_bytes = 0;  // of the link so far, this packet included; only differences mean anything
  std::int64_t bits_per_second = 0;
};

/// What an acknowledgement tells its sender.
struct Feedback {
  Time now = 0;                          // when it came
  Time rtt = 0;                          // since the packet began to leave the NIC
  std::int64_t bytes = 0;                // acknowledged by it, headers included
  std::uint32_t in_flight = 0;           // packets still unacknowledged after it
  bool marked = false;                   // the packet met a queue above the marking threshold
  const Telemetry* telemetry = nullptr;  // by hop, for protocols that ask for it
};

inline constexpr std::int64_t kNoWindow = INT64_MAX;
inline constexpr Time kCnpInterval = 50 * kMicrosecond;  // DCQCN's N: a flow is notified at most once in it

/// What a protocol needs from the engine: acknowledgements one by one (`acks`), congestion notifications (`notices`:
/// marks echoed at most once in kCnpInterval, as DCQCN's), telemetry of every hop with each acknowledgement.
struct Wants {
  bool acks = false;
  bool notices = false;
  bool telemetry = false;
};

/// Integers only; what is random is none; times are absolute here, and `words` makes them relative. All calls carry the
/// time of what they tell, never decreasing. A freshly made state has not started.
template <class P>
concept Protocol = std::default_initializable<P> && std::copyable<P> &&
    std::default_initializable<typename P::Parameters> &&
    requires(P sender, const P& is, const typename P::Parameters& with, const PathFacts& path, const Feedback& ack,
             Time now, std::int64_t bytes) {
  { P::kWants } -> std::convertible_to<Wants>;
  sender.start(with, path, now);                        // a transfer begins
  { is.window_bytes() } -> std::same_as<std::int64_t>;  // it may have in flight, headers included; or kNoWindow
  { is.gap(bytes) } -> std::same_as<Time>;  // least time from the start of this packet to the next; 0: line rate
  sender.sent(with, bytes, now);            // a packet, not the last, has left the NIC
  sender.acknowledged(with, ack);           // only if it wants acks
  sender.notified(with, now);               // only if it wants notices
  sender.lost(with, now);                   // a packet was found lost; at most once per round trip. Lossy fabrics only
  { is.deadline() } -> std::same_as<Time>;  // when expire() must be called next, or kNever: nothing would change
  sender.expire(with, now);                 // a deadline has come
};
// Beside these a protocol has `template <class V> static void words(P& sender, V&& visitor)`: it shows every field that
// can still change anything and does not follow from transport and path, in a fixed order: visitor.counted(value),
// visitor.due(deadline or kNever), visitor.age(instant in the past, the age from which on all are alike).

}  // namespace manyworlds::core::network
