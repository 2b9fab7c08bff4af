// NSCC, the sender-based congestion control of the Ultra Ethernet Specification 1.0, section 3.6 (congestion
// management): what an acknowledgement does is chosen by its mark and its delay together; scaling of the parameters as
// there.
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
    std::int64_t delay_gain_ppm = 12'500;    // weight of a delay in the average
    std::int64_t quick_gate = 3;             // quick adapt needs less than most / 2^this acknowledged
  };
  static const OptionTable<Parameters>& options();
  static constexpr Wants kWants{.acks = true};
  static constexpr std::int64_t kMostDecreasePpm = 500'000;
  static constexpr std::int64_t kReferenceBytes = 150'000;  // 100 Gb/s times the next: what the parameters are for
  static constexpr Time kReferenceRtt = 12 * kMicrosecond;
  static constexpr std::int64_t kAdjustPackets = 8;  // increase takes effect at least once in so many
  static constexpr std::int64_t kQuickTargets = 4;   // a delay of so many targets asks for quick adapt

  std::int64_t packet = 0, most = 0, bandwidth_delay = 0;  // bytes; follow from path and parameters, as does
  Time base_rtt = 0, target = 0;
  std::int64_t window = 0;       // bytes, in [packet, most]
  std::int64_t owed = 0;         // increase not yet in effect, bytes times bytes of window
  std::int64_t acked = 0;        // since it last took effect, bytes
  Time adjusted_at = 0;          // when
  Time average_delay = 0;        // of queues
  std::int64_t uncongested = 0;  // acknowledged in a row with hardly any delay, bytes
  bool fast = false;             // a window of those: fast increase
  bool decreased = false;        // less than a round trip ago
  Time decreased_at = 0;
  bool asked = false;     // for quick adapt, by a loss
  bool watching = false;  // for it: a period began at quick_at
  Time quick_at = 0;
  std::int64_t achieved = 0;   // acknowledged in this period, up to the gate, bytes
  std::int64_t to_ignore = 0;  // of what was in flight at the last quick adapt: its marks are old, bytes

  void start(const Parameters& with, const PathFacts& path, Time now) {
    *this = Nscc{};
    packet = path.packet_bytes;
    bandwidth_delay = bandwidth_delay_bytes(path);
    base_rtt = std::max<Time>(path.base_rtt_ps, 1);
    target = with.target_ps == 0 ? base_rtt : with.target_ps;
    window = most = with.most_bytes == 0 ? open_window_bytes(path) : std::max(with.most_bytes, packet);
    adjusted_at = now;
  }
  std::int64_t window_bytes() const { return window; }
  Time gap(std::int64_t) const { return 0; }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& with, const Feedback& ack) {
    const Time delay = std::max<Time>(ack.rtt - base_rtt, 0);
    if (decreased && ack.now - decreased_at > base_rtt) decreased = false;
    average(with, !ack.marked && delay > target ? base_rtt / 4 : delay);
    achieved = std::min(achieved + ack.bytes, most >> with.quick_gate);
    to_ignore = std::max<std::int64_t>(to_ignore - ack.bytes, 0);
    acked += ack.bytes;
    if (quick_adapted(with, ack.now, ack.in_flight, ack.marked, delay > kQuickTargets * target)) return;
    if (!ack.marked)
      delay < target ? proportional_increase(with, ack.bytes, delay) : fair_increase(ack.bytes);
    else if (delay >= target)
      multiplicative_decrease(with, ack.now);
    // Marked, and yet little delay: this path only, which is for the load balancing.
    fulfil(ack.now);
  }
  void notified(const Parameters&, Time) {}
  void lost(const Parameters& with, Time now) {
    asked = true;
    if (!quick_adapted(with, now, 0, true, true)) window = std::max(window - packet, packet);
  }
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  template <class V>
  static void words(Nscc& of, V&& visitor) {
    visitor.counted(of.window), visitor.counted(of.owed), visitor.counted(of.acked), visitor.counted(of.average_delay);
    visitor.age(of.adjusted_at, of.base_rtt);
    visitor.counted(of.uncongested), visitor.counted(of.fast), visitor.counted(of.decreased);
    if (of.decreased) visitor.age(of.decreased_at, of.base_rtt + 1);
    visitor.counted(of.asked), visitor.counted(of.watching);
    if (of.watching) visitor.age(of.quick_at, of.base_rtt + of.target + 1);
    visitor.counted(of.achieved), visitor.counted(of.to_ignore);
  }

 private:
  void average(const Parameters& with, Time delay) {
    const Time step = scaled(delay - average_delay, with.delay_gain_ppm, kMillion);
    average_delay = step == 0 ? delay : average_delay + step;  // or it would stop short of where it goes
  }
  /// When hardly anything came through in a whole period, the window becomes what did.
  bool quick_adapted(const Parameters& with, Time now, std::uint32_t in_flight, bool congested, bool wanted) {
    bool done = to_ignore > 0 && congested;
    if (!done && (!watching || now - quick_at > base_rtt + target)) {
      if (watching && (asked || wanted) && achieved < most >> with.quick_gate) {
        asked = false;
        to_ignore = in_flight * packet;
        window = std::max(achieved, packet);
        done = true;
      }
      achieved = 0;
      watching = true;
      quick_at = now;
    }
    if (done) owed = acked = 0;
    return done;
  }
  /// Every increase is per byte acknowledged and window, and scales with the bandwidth-delay product.
  void owe(std::int64_t bytes, std::int64_t packets_per_window) {
    owed += scaled(packets_per_window * packet * bytes, bandwidth_delay, kReferenceBytes);
  }
  void fair_increase(std::int64_t bytes) { owe(bytes, 5); }
  void proportional_increase(const Parameters& with, std::int64_t bytes, Time delay) {
    fast_increase(with, bytes, delay);
    if (fast) return;
    const std::int64_t most_owed = scaled(4 * packet * bytes, bandwidth_delay, kReferenceBytes);
    owed += scaled(most_owed, target - delay, kReferenceRtt);
  }
  void fast_increase(const Parameters& with, std::int64_t bytes, Time delay) {
    if (delay >= with.fast_delay_ps) {
      fast = false;
      uncongested = 0;
      return;
    }
    if (!fast) uncongested += bytes;
    if (fast || uncongested > window) {
      fast = true;
      uncongested = 0;
      window = std::min(window + scaled(bytes, bandwidth_delay, 4 * kReferenceBytes), most);
    }
  }
  void multiplicative_decrease(const Parameters& with, Time now) {
    fast = false;
    uncongested = 0;
    if (average_delay <= target || decreased) return;
    const std::int64_t share =
        std::min(scaled(with.decrease_ppm, average_delay - target, average_delay), kMostDecreasePpm);
    window = std::max(window - scaled(window, share, kMillion), packet);
    decreased = true;
    decreased_at = now;
  }
  void fulfil(Time now) {
    const bool period = now - adjusted_at >= base_rtt;
    if (acked <= kAdjustPackets * packet && !period) return;
    window += owed / window;
    if (period) {
      window += scaled(15 * packet, bandwidth_delay, 100 * kReferenceBytes);
      adjusted_at = now;
    }
    window = std::min(window, most);
    owed = acked = 0;
  }
};
static_assert(Protocol<Nscc>);

}  // namespace manyworlds::core::network
