// The concept of a transport protocol: the plain state of one sender and its transitions. Each protocol is one file in
// transports/. The engines are templates over the protocol, so that no packet needs a virtual call.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/base/units.hpp"

namespace manyworlds::core::network {

/// The properties of its path that a sender knows at the start.
struct PathInfo {
  std::int64_t line_bits_per_second = 0;  // rate of its NIC
  std::int64_t packet_bytes = 0;          // size of a full packet, including headers
  Time base_rtt_ps = 0;                   // for a full packet and its acknowledgement, with empty queues
  std::uint32_t hops = 0;
};

/// In-band telemetry (INT) of one link, recorded when a packet begins to be sent on it.
struct Telemetry {
  Time at = 0;                     // when the link began to send the packet
  std::int64_t waiting_bytes = 0;  // bytes queued behind the packet
  std::int64_t sent_bytes = 0;     // bytes sent by the link, including this packet; only differences are meaningful
  std::int64_t bits_per_second = 0;
};

/// The information that an acknowledgement carries to the sender.
struct Feedback {
  Time now = 0;                          // arrival of the acknowledgement
  Time rtt = 0;                          // since the NIC began to send the packet
  std::int64_t bytes = 0;                // acknowledged bytes, including headers
  std::uint32_t in_flight = 0;           // packets that remain unacknowledged
  bool marked = false;                   // the packet carried an ECN mark
  const Telemetry* telemetry = nullptr;  // by hop, for protocols that require it
};

inline constexpr std::int64_t kNoWindow = INT64_MAX;
inline constexpr Time kCnpInterval = 50 * kMicrosecond;  // DCQCN's N: at most one CNP per flow in this interval

/// The feedback that a protocol requires from the engine: individual acknowledgements (`acks`), congestion notification
/// packets (`cnps`: marks echoed at most once per kCnpInterval, as in DCQCN), and telemetry of every hop with each
/// acknowledgement (`telemetry`).
struct FeedbackNeeds {
  bool acks = false;
  bool cnps = false;
  bool telemetry = false;
};

/// What visit_state() may call of a visitor, which saves or restores the fields. This one stands for all of them in the
/// concept below and is never called.
struct AnyStateVisitor {
  template <class Value>
  void scalar(Value& value);                                // a plain value
  void deadline(Time& at);                                  // a time to come, or kNever
  void age(Time& at, Time max_age);                         // a past time; beyond this age all are equivalent
  void link_bytes(std::int64_t& bytes, std::uint32_t hop);  // what telemetry said of Telemetry::sent_bytes
};

/// The state consists of integers and involves no randomness. Times are absolute; visit_state() makes them relative.
/// Every call carries the time of its event, and these times never decrease. A default-constructed state has not
/// started.
template <class P>
concept SenderProtocol = std::default_initializable<P> && std::copyable<P> &&
    std::default_initializable<typename P::Parameters> &&
    requires(P sender, const P& sender_state, const typename P::Parameters& parameters, const PathInfo& path,
             const Feedback& ack, Time now, std::int64_t bytes, AnyStateVisitor visitor) {
  { P::kNeeds } -> std::convertible_to<FeedbackNeeds>;
  sender.start(parameters, path, now);  // a transfer begins
  {
    sender_state.window_bytes()
    } -> std::same_as<std::int64_t>;  // maximum bytes in flight, including headers; or kNoWindow
  {
    sender_state.gap(bytes)
    } -> std::same_as<Time>;             // pacing: least time from this packet's start to the next; 0: line rate
  sender.sent(parameters, bytes, now);   // a packet other than the last has left the NIC
  sender.acknowledged(parameters, ack);  // called only if kNeeds.acks
  sender.notified(parameters, now);      // called only if kNeeds.cnps
  sender.lost(parameters, now);          // a loss was detected, at most once per round trip
  {
    sender_state.deadline()
    } -> std::same_as<Time>;       // when expire() must be called next, or kNever if it would change nothing
  sender.expire(parameters, now);  // a deadline has been reached
  {
    P::visit_state(sender, visitor)
    } -> std::same_as<void>;  // passes every field that still affects the sender and does not follow from transport and
                              // path, in a fixed order
};

}  // namespace manyworlds::core::network
