// Integer time and rates. Time is picoseconds, rounded where it is born and only added afterwards.
#pragma once

#include <cstdint>
#include <limits>

namespace manyworlds::core {

using Time = std::int64_t;  // picoseconds; 2^63 ps is 106 days

__extension__ typedef __int128 Wide;  // for products of two 64-bit figures; ISO C++ has no such type

inline constexpr Time kNever = std::numeric_limits<Time>::max();
inline constexpr Time kNanosecond = 1'000;
inline constexpr Time kMicrosecond = 1'000'000;
inline constexpr Time kMillisecond = 1'000'000'000;
inline constexpr Time kSecond = 1'000'000'000'000;

/// Time to put `bytes` on a wire of `bits_per_second` (> 0), rounded up: the rounding of one packet.
constexpr Time serialization_ps(std::int64_t bytes, std::int64_t bits_per_second) {
  const auto bits_ps = static_cast<Wide>(bytes) * 8 * kSecond;
  return static_cast<Time>((bits_ps + bits_per_second - 1) / bits_per_second);
}

/// A figure of at least 0 to the nearest whole one, half up: the rounding of kernels and of what libraries cost.
constexpr std::int64_t round_half_up(double figure) {
  return static_cast<std::int64_t>(figure + 0.5);
}

/// Seconds as a floating figure, for reports only: nothing is computed from it.
constexpr double seconds(Time ps) {
  return static_cast<double>(ps) * 1e-12;
}

/// Bytes in GiB, for reports only.
constexpr double gib(double bytes) {
  return bytes / static_cast<double>(1 << 30);
}

}  // namespace manyworlds::core
