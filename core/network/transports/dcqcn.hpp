// DCQCN's reaction point in integer arithmetic: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
// SIGCOMM 2015, sections 3.1 and 5, figure 7; the figures are those of its table 14 and section 5.
#pragma once

#include <algorithm>

#include "core/network/engine/protocol.hpp"

namespace manyworlds::core::network {

struct Dcqcn {
  struct Parameters {};
  static constexpr Wants kWants{.notices = true};

  static constexpr Time kAlphaTimer = 55 * kMicrosecond;    // K
  static constexpr Time kRateTimer = 55 * kMicrosecond;     // T
  static constexpr std::int64_t kByteCounter = 10'000'000;  // B
  static constexpr std::uint32_t kFastRecovery = 5;         // F
  static constexpr std::int64_t kAdditive = 40'000'000;     // R_AI, bits per second
  static constexpr std::int64_t kHyper = 200'000'000;       // R_HAI, bits per second
  static constexpr std::int64_t kAlphaOne = 1 << 20;        // alpha is a fixed-point share
  static constexpr std::int64_t kRateFloorShare = 1'000;    // the rate never falls below line / this

  std::int64_t line = 0, rate = 0, target = 0;  // bits per second
  std::int64_t alpha = kAlphaOne;
  std::int64_t bytes = 0;                         // sent since the last byte-counter stage
  std::uint32_t timer_stage = 0, byte_stage = 0;  // saturate at kFastRecovery + 1
  Time alpha_at = kNever, rate_at = kNever;       // deadlines; kNever: the timer cannot change anything

  void start(const Parameters&, const PathFacts& path, Time) {
    *this = Dcqcn{};
    line = rate = target = path.line_bits_per_second;
  }
  std::int64_t window_bytes() const { return kNoWindow; }
  Time gap(std::int64_t packet_bytes) const { return at_line() ? 0 : serialization_ps(packet_bytes, rate); }

  void sent(const Parameters&, std::int64_t packet_bytes, Time) {
    if (at_line()) return;
    bytes += packet_bytes;
    if (bytes < kByteCounter) return;
    bytes -= kByteCounter;
    byte_stage = std::min(byte_stage + 1, kFastRecovery + 1);
    increase();
    if (at_line()) rate_at = kNever;
  }
  void acknowledged(const Parameters&, const Feedback&) {}

  void notified(const Parameters&, Time now) {
    target = rate;
    rate = std::max(rate - (rate * (alpha >> 10) >> 11), line / kRateFloorShare);  // rate (1 - alpha / 2)
    alpha += (kAlphaOne - alpha) >> 8;                                             // (1 - g) alpha + g, g = 1/256
    timer_stage = byte_stage = 0;
    bytes = 0;
    alpha_at = now + kAlphaTimer;
    rate_at = now + kRateTimer;
  }
  void lost(const Parameters& with, Time now) { notified(with, now); }

  Time deadline() const { return std::min(alpha_at, rate_at); }
  void expire(const Parameters&, Time now) {
    if (alpha_at <= now) {
      const std::int64_t step = alpha >> 8;
      alpha = step == 0 ? 0 : alpha - step;  // a defined floor: below 256 / 2^20 it is nothing
      alpha_at = alpha == 0 ? kNever : now + kAlphaTimer;
    }
    if (rate_at <= now) {
      timer_stage = std::min(timer_stage + 1, kFastRecovery + 1);
      increase();
      rate_at = at_line() ? kNever : now + kRateTimer;
    }
  }

  /// `line` follows from the path.
  template <class V>
  static void words(Dcqcn& of, V&& visitor) {
    visitor.counted(of.rate), visitor.counted(of.target), visitor.counted(of.alpha), visitor.counted(of.bytes);
    visitor.counted(of.timer_stage), visitor.counted(of.byte_stage);
    visitor.due(of.alpha_at), visitor.due(of.rate_at);
  }

 private:
  bool at_line() const { return rate == line; }
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
static_assert(Protocol<Dcqcn>);

}  // namespace manyworlds::core::network
