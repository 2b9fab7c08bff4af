// NSCC, the sender-based congestion control of the Ultra Ethernet Specification 1.0, section 3.6 (congestion
// management): the reaction to an acknowledgement depends on its ECN mark and its delay together. The parameters are
// scaled as specified there.
#pragma once

#include "core/base/options.hpp"
#include "core/network/transports/fixed_point.hpp"

namespace manyworlds::core::network {

struct Nscc {
  struct Parameters {
    std::int64_t target_ps = 0;              // queueing delay; 0: one unloaded round trip, for fabrics that do not trim
    std::int64_t fast_delay_ps = 1'000'000;  // below this queueing delay the increase may be fast
    std::int64_t most_bytes = 0;             // 0: 1.5 bandwidth-delay products
    std::int64_t decrease_ppm = 800'000;     // gamma
    std::int64_t delay_gain_ppm = 12'500;    // weight of a new delay in the average
    std::int64_t quick_gate = 3;             // quick adapt if less than largest window / 2^this is acknowledged
  };
  static const OptionTable<Parameters>& options();
  static constexpr FeedbackNeeds kNeeds{.acks = true};
  static constexpr std::int64_t kMaxDecreasePpm = 500'000;
  static constexpr std::int64_t kReferenceBytes = 150'000;  // 100 Gb/s times kReferenceRtt: the reference network
  static constexpr Time kReferenceRtt = 12 * kMicrosecond;
  static constexpr std::int64_t kAdjustPackets = 8;  // increases are applied after this many packets at the latest
  static constexpr std::int64_t kQuickTargets = 4;   // a delay above this many targets requests quick adapt

  // Derived from path and parameters; sizes are in bytes.
  std::int64_t packet_bytes = 0, max_window = 0, bandwidth_delay = 0;
  Time base_rtt = 0, target = 0;
  // State.
  std::int64_t window = 0;             // bytes, between one packet and the largest window
  std::int64_t pending_increase = 0;   // increase not yet applied, bytes squared: to be divided by the window
  std::int64_t acked = 0;              // bytes acknowledged since increases were last applied
  Time adjusted_at = 0;                // begin of the period after which increases are applied
  Time average_delay = 0;              // moving average of the queueing delay
  std::int64_t uncongested_bytes = 0;  // bytes acknowledged in a row with hardly any delay
  bool in_fast_increase = false;       // a whole window was acknowledged with hardly any delay
  bool decreased = false;              // a decrease happened less than a round trip ago
  Time decreased_at = 0;
  bool quick_adapt_requested = false;  // quick adapt was requested by a loss
  bool quick_adapt_active = false;     // a quick-adapt period has begun
  Time quick_adapt_begin = 0;
  std::int64_t achieved_bytes = 0;   // bytes acknowledged in this period, up to the gate
  std::int64_t bytes_to_ignore = 0;  // unacknowledged bytes sent before the last quick adapt, whose marks are outdated

  void start(const Parameters& parameters, const PathInfo& path, Time now) {
    *this = Nscc{};
    packet_bytes = path.packet_bytes;
    bandwidth_delay = bandwidth_delay_bytes(path);
    base_rtt = std::max<Time>(path.base_rtt_ps, 1);
    target = parameters.target_ps == 0 ? base_rtt : parameters.target_ps;
    window = max_window =
        parameters.most_bytes == 0 ? default_window_bytes(path) : std::max(parameters.most_bytes, packet_bytes);
    adjusted_at = now;
  }
  std::int64_t window_bytes() const { return window; }
  Time gap(std::int64_t) const { return 0; }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& parameters, const Feedback& ack) {
    const Time delay = std::max<Time>(ack.rtt - base_rtt, 0);
    if (decreased && ack.now - decreased_at > base_rtt) decreased = false;
    update_average(parameters, !ack.marked && delay > target ? base_rtt / 4 : delay);
    achieved_bytes = std::min(achieved_bytes + ack.bytes, max_window >> parameters.quick_gate);
    bytes_to_ignore = std::max<std::int64_t>(bytes_to_ignore - ack.bytes, 0);
    acked += ack.bytes;
    if (quick_adapt(parameters, ack.now, ack.in_flight, ack.marked, delay > kQuickTargets * target)) return;
    if (!ack.marked)
      delay < target ? proportional_increase(parameters, ack.bytes, delay) : fair_increase(ack.bytes);
    else if (delay >= target)
      multiplicative_decrease(parameters, ack.now);
    // Marked with little delay: only this path is congested, which is left to load balancing.
    apply_increase(ack.now);
  }
  void notified(const Parameters&, Time) {}
  void lost(const Parameters& parameters, Time now) {
    quick_adapt_requested = true;
    if (!quick_adapt(parameters, now, 0, true, true)) window = std::max(window - packet_bytes, packet_bytes);
  }
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  template <class V>
  static void visit_state(Nscc& sender, V&& visitor) {
    visitor.scalar(sender.window), visitor.scalar(sender.pending_increase), visitor.scalar(sender.acked),
        visitor.scalar(sender.average_delay);
    visitor.age(sender.adjusted_at, sender.base_rtt);
    visitor.scalar(sender.uncongested_bytes), visitor.scalar(sender.in_fast_increase), visitor.scalar(sender.decreased);
    if (sender.decreased) visitor.age(sender.decreased_at, sender.base_rtt + 1);
    visitor.scalar(sender.quick_adapt_requested), visitor.scalar(sender.quick_adapt_active);
    if (sender.quick_adapt_active) visitor.age(sender.quick_adapt_begin, sender.base_rtt + sender.target + 1);
    visitor.scalar(sender.achieved_bytes), visitor.scalar(sender.bytes_to_ignore);
  }

 private:
  void update_average(const Parameters& parameters, Time delay) {
    const Time step = mul_div(delay - average_delay, parameters.delay_gain_ppm, kMillion);
    average_delay = step == 0 ? delay : average_delay + step;  // rounding would otherwise keep it from converging
  }
  /// Quick adapt: if little was acknowledged in a whole period, the window becomes the bytes acknowledged in it.
  /// Returns whether the acknowledgement needs no further reaction.
  bool quick_adapt(const Parameters& parameters, Time now, std::uint32_t in_flight, bool congested, bool large_delay) {
    bool done = bytes_to_ignore > 0 && congested;
    if (!done && (!quick_adapt_active || now - quick_adapt_begin > base_rtt + target)) {
      if (quick_adapt_active && (quick_adapt_requested || large_delay) &&
          achieved_bytes < max_window >> parameters.quick_gate) {
        quick_adapt_requested = false;
        bytes_to_ignore = in_flight * packet_bytes;
        window = std::max(achieved_bytes, packet_bytes);
        done = true;
      }
      achieved_bytes = 0;
      quick_adapt_active = true;
      quick_adapt_begin = now;
    }
    if (done) pending_increase = acked = 0;
    return done;
  }
  /// Adds to the pending increase, which is proportional to the bytes acknowledged and the bandwidth-delay product.
  void add_increase(std::int64_t bytes, std::int64_t packets_per_window) {
    pending_increase += mul_div(packets_per_window * packet_bytes * bytes, bandwidth_delay, kReferenceBytes);
  }
  void fair_increase(std::int64_t bytes) { add_increase(bytes, 5); }
  void proportional_increase(const Parameters& parameters, std::int64_t bytes, Time delay) {
    fast_increase(parameters, bytes, delay);
    if (in_fast_increase) return;
    const std::int64_t max_increase = mul_div(4 * packet_bytes * bytes, bandwidth_delay, kReferenceBytes);
    pending_increase += mul_div(max_increase, target - delay, kReferenceRtt);
  }
  void fast_increase(const Parameters& parameters, std::int64_t bytes, Time delay) {
    if (delay >= parameters.fast_delay_ps) {
      in_fast_increase = false;
      uncongested_bytes = 0;
      return;
    }
    if (!in_fast_increase) uncongested_bytes += bytes;
    if (in_fast_increase || uncongested_bytes > window) {
      in_fast_increase = true;
      uncongested_bytes = 0;
      window = std::min(window + mul_div(bytes, bandwidth_delay, 4 * kReferenceBytes), max_window);
    }
  }
  void multiplicative_decrease(const Parameters& parameters, Time now) {
    in_fast_increase = false;
    uncongested_bytes = 0;
    if (average_delay <= target || decreased) return;
    const std::int64_t share =
        std::min(mul_div(parameters.decrease_ppm, average_delay - target, average_delay), kMaxDecreasePpm);
    window = std::max(window - mul_div(window, share, kMillion), packet_bytes);
    decreased = true;
    decreased_at = now;
  }
  /// Applies the pending increase.
  void apply_increase(Time now) {
    const bool period = now - adjusted_at >= base_rtt;
    if (acked <= kAdjustPackets * packet_bytes && !period) return;
    window += pending_increase / window;
    if (period) {
      window += mul_div(15 * packet_bytes, bandwidth_delay, 100 * kReferenceBytes);
      adjusted_at = now;
    }
    window = std::min(window, max_window);
    pending_increase = acked = 0;
  }
};
static_assert(SenderProtocol<Nscc>);

}  // namespace manyworlds::core::network
