// TIMELY's sender: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1
// and section 4.3; by default with the change of Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and
// TIMELY", CoNEXT 2016, algorithm 2, without which it has no unique fixed point and flows keep any shares they have.
#pragma once

#include "core/base/options.hpp"
#include "core/network/transports/fixed_point.hpp"

namespace manyworlds::core::network {

struct Timely {
  enum class Variant : std::uint8_t { patched, original };
  struct Parameters {
    Variant variant = Variant::patched;
    std::int64_t low_ps = 0;              // T_low, and the patched form's reference; 0: 1.5 unloaded round trips
    std::int64_t high_ps = 0;             // T_high; 0: 5 unloaded round trips
    std::int64_t gain_ppm = 875'000;      // alpha, weight of a new difference of round trips
    std::int64_t decrease_ppm = 800'000;  // beta
    std::int64_t patched_ppm = 8'000;     // beta of the patched form between T_low and T_high
    std::int64_t additive_bps = 0;        // delta; 0: a thousandth of the line rate
    std::int64_t segment_bytes = 16'384;  // one decision per so much acknowledged
  };
  static const OptionTable<Parameters>& options();
  static constexpr Wants kWants{.acks = true};
  static constexpr std::uint32_t kHyperAfter = 5;  // decisions with a falling round trip until increase is hyperactive
  static constexpr std::int64_t kHyper = 5;        // N, and then it is so much larger
  static constexpr std::int64_t kRateFloorShare = 100;  // the rate never falls below line / this

  std::int64_t line = 0, additive = 0;  // bits per second; follow from path and parameters, as does what is next
  Time base_rtt = 0, low = 0, high = 0;
  std::int64_t rate = 0;              // bits per second, in [line / kRateFloorShare, line]
  std::int64_t acked = 0;             // bytes since the last decision
  Time previous_rtt = 0, change = 0;  // change: of the round trip between decisions, averaged
  bool measured = false;              // previous_rtt is one
  std::uint32_t falling = 0;          // decisions in a row with no growth, up to kHyperAfter

  void start(const Parameters& with, const PathFacts& path, Time) {
    *this = Timely{};
    line = rate = path.line_bits_per_second;
    additive = with.additive_bps == 0 ? std::max<std::int64_t>(line / 1'000, 1) : with.additive_bps;
    base_rtt = std::max<Time>(path.base_rtt_ps, 1);
    low = with.low_ps == 0 ? base_rtt * 3 / 2 : with.low_ps;
    high = std::max(with.high_ps == 0 ? base_rtt * 5 : with.high_ps, low);
  }
  std::int64_t window_bytes() const { return kNoWindow; }
  Time gap(std::int64_t packet_bytes) const { return rate == line ? 0 : serialization_ps(packet_bytes, rate); }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& with, const Feedback& ack) {
    acked += ack.bytes;
    if (acked < with.segment_bytes) return;
    acked = 0;
    if (measured)
      change = scaled(change, kMillion - with.gain_ppm, kMillion) +
               scaled(ack.rtt - previous_rtt, with.gain_ppm, kMillion);  // each towards zero, so that it comes to rest
    previous_rtt = ack.rtt;
    measured = true;
    rate = std::clamp(decided(with, ack.rtt), least(), line);
  }
  void notified(const Parameters&, Time) {}
  void lost(const Parameters& with, Time) {
    rate = std::max(rate - scaled(rate, with.decrease_ppm, kMillion) / 2, least());
  }
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  template <class V>
  static void words(Timely& of, V&& visitor) {
    visitor.counted(of.rate), visitor.counted(of.acked), visitor.counted(of.falling), visitor.counted(of.measured);
    visitor.counted(of.previous_rtt), visitor.counted(of.change);
  }

 private:
  std::int64_t least() const { return std::max<std::int64_t>(line / kRateFloorShare, 1); }
  /// What one round trip makes of the rate.
  std::int64_t decided(const Parameters& with, Time rtt) {
    if (rtt < low) {
      falling = 0;
      return rate + additive;
    }
    if (rtt > high) {
      falling = 0;
      return rate - scaled(rate, scaled(with.decrease_ppm, rtt - high, rtt), kMillion);
    }
    const std::int64_t gradient = scaled(std::clamp(change, -base_rtt, base_rtt), kMillion, base_rtt);  // ppm
    return with.variant == Variant::patched ? patched(with, rtt, gradient) : original(with, gradient);
  }
  std::int64_t original(const Parameters& with, std::int64_t gradient) {
    if (gradient > 0) {
      falling = 0;
      return rate - scaled(rate, scaled(with.decrease_ppm, gradient, kMillion), kMillion);
    }
    falling = std::min(falling + 1, kHyperAfter);
    return rate + (falling == kHyperAfter ? kHyper : 1) * additive;
  }
  /// (1 - w) delta + rate (1 - beta w (rtt - reference) / reference); w grows from 0 to 1 as the gradient does from
  /// -1/4 to 1/4.
  std::int64_t patched(const Parameters& with, Time rtt, std::int64_t gradient) const {
    const std::int64_t weight = std::clamp<std::int64_t>(2 * gradient + kMillion / 2, 0, kMillion);
    const std::int64_t error = scaled(std::min(rtt - low, 100 * low), kMillion, low);
    const std::int64_t share = scaled(scaled(with.patched_ppm, weight, kMillion), error, kMillion);
    return scaled(additive, kMillion - weight, kMillion) + rate - scaled(rate, std::min(share, kMillion), kMillion);
  }
};
static_assert(Protocol<Timely>);

}  // namespace manyworlds::core::network
