// Integer arithmetic of the congestion controls: products that do not overflow, shares in parts per million, roots, and
// round trips counted in acknowledgements.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/network/engine/protocol.hpp"

namespace manyworlds::core::network {

inline constexpr std::int64_t kMillion = 1'000'000;  // shares are given in parts per million

/// value * times / over, towards zero; only the result must fit into 64 bits.
constexpr std::int64_t scaled(std::int64_t value, std::int64_t times, std::int64_t over) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(value, times, &product)) return product / over;
  return static_cast<std::int64_t>(static_cast<Wide>(value) * times / over);
}

/// The largest integer whose square is not above `of` (>= 0), by Newton's method from above.
constexpr std::int64_t integer_root(std::int64_t of) {
  if (of <= 0) return 0;
  std::int64_t guess = std::int64_t{1} << (std::bit_width(static_cast<std::uint64_t>(of)) + 1) / 2;
  for (;;) {
    const std::int64_t next = (guess + of / guess) / 2;
    if (next >= guess) return guess;
    guess = next;
  }
}

/// What the NIC sends in one unloaded round trip, at least one packet.
constexpr std::int64_t bandwidth_delay_bytes(const PathFacts& path) {
  return std::max(scaled(path.line_bits_per_second, path.base_rtt_ps, 8 * kSecond), path.packet_bytes);
}

/// The window that an uncongested sender of the window protocols starts with and never exceeds: 1.5 bandwidth-delay
/// products, so that it does not hold back a lone flow, and whole packets, so that the last one counts.
constexpr std::int64_t open_window_bytes(const PathFacts& path) {
  return (bandwidth_delay_bytes(path) * 3 / 2 / path.packet_bytes + 1) * path.packet_bytes;
}

/// A round trip: it ends with the first acknowledgement of a packet that was sent after it began.
struct Round {
  std::uint32_t left = 0;  // acknowledgements of packets sent before

  /// Whether this acknowledgement, after which `in_flight` packets are left, ends it; then the next one begins.
  constexpr bool ended_by_ack(std::uint32_t in_flight) {
    if (left > 0) {
      --left;
      return false;
    }
    left = in_flight;
    return true;
  }
};

}  // namespace manyworlds::core::network
