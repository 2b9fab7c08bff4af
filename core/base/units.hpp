// Integer time and rates. Time is counted in picoseconds; it is rounded once, where a duration is computed, and only
// added afterwards.
#pragma once

#include <cstdint>
#include <limits>

namespace manyworlds::core {

using Time = std::int64_t;  // picoseconds; 2^63 ps is 106 days

__extension__ typedef __int128 Int128;  // holds products of two 64-bit numbers; ISO C++ has no such type

inline constexpr Time kNever = std::numeric_limits<Time>::max();
inline constexpr Time kNanosecond = 1'000;
inline constexpr Time kMicrosecond = 1'000'000;
inline constexpr Time kMillisecond = 1'000'000'000;
inline constexpr Time kSecond = 1'000'000'000'000;

/// Returns the time to send `bytes` over a wire of `bits_per_second` (> 0), rounded up. Packets are rounded this way.
constexpr Time serialization_ps(std::int64_t bytes, std::int64_t bits_per_second) {
  const auto bits_ps = static_cast<Int128>(bytes) * 8 * kSecond;
  return static_cast<Time>((bits_ps + bits_per_second - 1) / bits_per_second);
}

/// Returns the nearest integer of a number >= 0, halves rounded up. Kernel times and library overheads are rounded this
/// way.
constexpr std::int64_t round_half_up(double value) {
  return static_cast<std::int64_t>(value + 0.5);
}

/// Returns picoseconds as seconds. For reports only; no simulation result may depend on it.
constexpr double seconds(Time ps) {
  return static_cast<double>(ps) * 1e-12;
}

/// Returns bytes as GiB. For reports only.
constexpr double gib(double bytes) {
  return bytes / static_cast<double>(1 << 30);
}

}  // namespace manyworlds::core
