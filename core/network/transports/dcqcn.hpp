// The reaction point (sender) of DCQCN in integer arithmetic: Zhu et al., "Congestion Control for Large-Scale RDMA
// Deployments", SIGCOMM 2015, sections 3.1 and 5, figure 7; the constants are from its table 14 and section 5.
#pragma once

#include <algorithm>

#include "core/network/engine/sender_protocol.hpp"

namespace manyworlds::core::network {

struct Dcqcn {
  struct Parameters {};
  static constexpr FeedbackNeeds kNeeds{.cnps = true};

  static constexpr Time kAlphaTimer = 55 * kMicrosecond;         // K
  static constexpr Time kRateTimer = 55 * kMicrosecond;          // T
  static constexpr std::int64_t kByteCounter = 10'000'000;       // B
  static constexpr std::uint32_t kFastRecovery = 5;              // F
  static constexpr std::int64_t kAdditiveIncrease = 40'000'000;  // R_AI, bits per second
  static constexpr std::int64_t kHyperIncrease = 200'000'000;    // R_HAI, bits per second
  static constexpr std::int64_t kAlphaOne = 1 << 20;             // fixed-point representation of alpha = 1
  static constexpr std::int64_t kRateFloorShare = 1'000;         // the minimum rate is the line rate divided by this

  std::int64_t line_rate = 0, rate = 0, target = 0;  // bits per second
  std::int64_t alpha = kAlphaOne;
  std::int64_t bytes = 0;                                // bytes sent since the last byte-counter stage
  std::uint32_t timer_stage = 0, byte_stage = 0;         // saturate at kFastRecovery + 1
  Time alpha_timer_at = kNever, rate_timer_at = kNever;  // deadlines; kNever: the timer cannot change anything

  void start(const Parameters&, const PathInfo& path, Time) {
    *this = Dcqcn{};
    line_rate = rate = target = path.line_bits_per_second;
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
    if (at_line()) rate_timer_at = kNever;
  }
  void acknowledged(const Parameters&, const Feedback&) {}

  void notified(const Parameters&, Time now) {
    target = rate;
    rate = std::max(rate - (rate * (alpha >> 10) >> 11), line_rate / kRateFloorShare);  // rate (1 - alpha / 2)
    alpha += (kAlphaOne - alpha) >> 8;                                                  // (1 - g) alpha + g, g = 1/256
    timer_stage = byte_stage = 0;
    bytes = 0;
    alpha_timer_at = now + kAlphaTimer;
    rate_timer_at = now + kRateTimer;
  }
  void lost(const Parameters& parameters, Time now) { notified(parameters, now); }

  Time deadline() const { return std::min(alpha_timer_at, rate_timer_at); }
  void expire(const Parameters&, Time now) {
    if (alpha_timer_at <= now) {
      const std::int64_t step = alpha >> 8;
      alpha = step == 0 ? 0 : alpha - step;  // alpha below 256 / 2^20, which would not decrease further, becomes 0
      alpha_timer_at = alpha == 0 ? kNever : now + kAlphaTimer;
    }
    if (rate_timer_at <= now) {
      timer_stage = std::min(timer_stage + 1, kFastRecovery + 1);
      increase();
      rate_timer_at = at_line() ? kNever : now + kRateTimer;
    }
  }

  /// The line rate is not visited because it follows from the path.
  template <class V>
  static void visit_state(Dcqcn& sender, V&& visitor) {
    visitor.scalar(sender.rate), visitor.scalar(sender.target), visitor.scalar(sender.alpha),
        visitor.scalar(sender.bytes);
    visitor.scalar(sender.timer_stage), visitor.scalar(sender.byte_stage);
    visitor.deadline(sender.alpha_timer_at), visitor.deadline(sender.rate_timer_at);
  }

 private:
  bool at_line() const { return rate == line_rate; }
  void increase() {
    if (timer_stage > kFastRecovery && byte_stage > kFastRecovery)
      target += kHyperIncrease;
    else if (timer_stage > kFastRecovery || byte_stage > kFastRecovery)
      target += kAdditiveIncrease;
    target = std::min(target, line_rate);
    rate = (rate + target + 1) / 2;  // rounded up, so that the rate reaches the target
    if (at_line()) target = line_rate, bytes = 0, timer_stage = byte_stage = 0;
  }
};
static_assert(SenderProtocol<Dcqcn>);

}  // namespace manyworlds::core::network
