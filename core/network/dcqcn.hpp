// DCQCN's reaction point in integer arithmetic: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
// SIGCOMM 2015, sections 3.1 and 5, figure 7. Time is relative to nothing: callers pass `now` and keep deadlines.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/units.hpp"

namespace manyworlds::core::network {

inline constexpr Time kCnpInterval = 50 * kMicrosecond;   // N: at most one congestion notification per flow in it
inline constexpr Time kAlphaTimer = 55 * kMicrosecond;    // K
inline constexpr Time kRateTimer = 55 * kMicrosecond;     // T
inline constexpr std::int64_t kByteCounter = 10'000'000;  // B
inline constexpr std::uint32_t kFastRecovery = 5;         // F
inline constexpr std::int64_t kAdditive = 40'000'000;     // R_AI, bits per second
inline constexpr std::int64_t kHyper = 200'000'000;       // R_HAI, bits per second
inline constexpr std::int64_t kAlphaOne = 1 << 20;        // alpha is a fixed-point share
inline constexpr std::int64_t kRateFloorShare = 1'000;    // the rate never falls below line / this

struct RateControl {
  std::int64_t line = 0, rate = 0, target = 0;  // bits per second
  std::int64_t alpha = kAlphaOne;
  std::int64_t bytes = 0;                         // sent since the last byte-counter stage
  std::uint32_t timer_stage = 0, byte_stage = 0;  // saturate at kFastRecovery + 1
  Time alpha_at = kNever, rate_at = kNever;       // deadlines; kNever: the timer cannot change anything
  Time next_packet_at = 0;                        // pacing
  Time last_cnp = -kCnpInterval;                  // receiver: when it last told the sender

  bool at_line() const { return rate == line; }

  void reset(std::int64_t line_rate, Time now) {
    *this = RateControl{};
    line = rate = target = line_rate;
    next_packet_at = now;
    last_cnp = now - kCnpInterval;
  }

  void congestion(Time now) {
    target = rate;
    rate = std::max(rate - (rate * (alpha >> 10) >> 11), line / kRateFloorShare);  // rate (1 - alpha / 2)
    alpha += (kAlphaOne - alpha) >> 8;                                             // (1 - g) alpha + g, g = 1/256
    timer_stage = byte_stage = 0;
    bytes = 0;
    alpha_at = now + kAlphaTimer;
    rate_at = now + kRateTimer;
  }

  void alpha_timer(Time now) {
    const std::int64_t step = alpha >> 8;
    alpha = step == 0 ? 0 : alpha - step;  // a defined floor: below 256 / 2^20 it is nothing
    alpha_at = alpha == 0 ? kNever : now + kAlphaTimer;
  }

  void rate_timer(Time now) {
    timer_stage = std::min(timer_stage + 1, kFastRecovery + 1);
    increase();
    rate_at = at_line() ? kNever : now + kRateTimer;
  }

  void sent(std::int64_t packet_bytes) {
    if (at_line()) return;
    bytes += packet_bytes;
    if (bytes < kByteCounter) return;
    bytes -= kByteCounter;
    byte_stage = std::min(byte_stage + 1, kFastRecovery + 1);
    increase();
    if (at_line()) rate_at = kNever;
  }

 private:
  void increase() {
    if (timer_stage > kFastRecovery && byte_stage > kFastRecovery)
      target += kHyper;
    else if (timer_stage > kFastRecovery || byte_stage > kFastRecovery)
      target += kAdditive;
    target = std::min(target, line);
    rate = (rate + target + 1) / 2;  // upward, so that it reaches the target
    if (at_line()) target = line, bytes = 0, timer_stage = byte_stage = 0;
  }
};

}  // namespace manyworlds::core::network
