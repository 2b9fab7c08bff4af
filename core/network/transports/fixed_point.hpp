// Integer arithmetic shared by the congestion controls: products that do not overflow, shares in parts per million,
// square roots, and round trips counted in acknowledgements.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/network/engine/sender_protocol.hpp"

namespace manyworlds::core::network {

inline constexpr std::int64_t kMillion = 1'000'000;  // 1 in parts per million

/// Returns value * multiplier / divisor, rounded towards zero; only the result must fit into 64 bits.
constexpr std::int64_t mul_div(std::int64_t value, std::int64_t multiplier, std::int64_t divisor) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(value, multiplier, &product)) return product / divisor;
  return static_cast<std::int64_t>(static_cast<Int128>(value) * multiplier / divisor);
}

/// Returns the largest integer whose square is at most `value`, by Newton's method from above; 0 for negative
/// arguments.
constexpr std::int64_t integer_root(std::int64_t value) {
  if (value <= 0) return 0;
  std::int64_t guess = std::int64_t{1} << (std::bit_width(static_cast<std::uint64_t>(value)) + 1) / 2;
  for (;;) {
    const std::int64_t next = (guess + value / guess) / 2;
    if (next >= guess) return guess;
    guess = next;
  }
}

/// Returns the bytes that the NIC sends in one unloaded round trip, at least one packet.
constexpr std::int64_t bandwidth_delay_bytes(const PathInfo& path) {
  return std::max(mul_div(path.line_bits_per_second, path.base_rtt_ps, 8 * kSecond), path.packet_bytes);
}

/// Returns the default of the largest and first window of window-based protocols: 1.5 bandwidth-delay products, so that
/// it does not limit a single flow, rounded to whole packets, because a window admits whole packets only.
constexpr std::int64_t default_window_bytes(const PathInfo& path) {
  return (bandwidth_delay_bytes(path) * 3 / 2 / path.packet_bytes + 1) * path.packet_bytes;
}

/// A round trip, which ends with the first acknowledgement of a packet that was sent after it began.
struct RoundTrip {
  std::uint32_t acks_left = 0;  // outstanding acknowledgements of packets sent before the round trip began

  /// Counts an acknowledgement after which `in_flight` packets are unacknowledged. Returns whether it ends the round
  /// trip; the next one then begins.
  constexpr bool ended_by_ack(std::uint32_t in_flight) {
    if (acks_left > 0) {
      --acks_left;
      return false;
    }
    acks_left = in_flight;
    return true;
  }
};

}  // namespace manyworlds::core::network
