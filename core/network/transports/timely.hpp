// The TIMELY sender: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm
// 1 and section 4.3; by default with the change of Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and
// TIMELY", CoNEXT 2016, algorithm 2, without which it has no unique fixed point and flows keep arbitrary shares.
#pragma once

#include "core/base/options.hpp"
#include "core/network/transports/fixed_point.hpp"

namespace manyworlds::core::network {

struct Timely {
  enum class Variant : std::uint8_t { patched, original };
  struct Parameters {
    Variant variant = Variant::patched;
    std::int64_t low_ps = 0;              // T_low, also the reference of the patched form; 0: 1.5 unloaded round trips
    std::int64_t high_ps = 0;             // T_high; 0: 5 unloaded round trips
    std::int64_t gain_ppm = 875'000;      // alpha, weight of a new round trip difference in the average
    std::int64_t decrease_ppm = 800'000;  // beta
    std::int64_t patched_ppm = 8'000;     // beta of the patched form between T_low and T_high
    std::int64_t additive_bps = 0;        // delta; 0: a thousandth of the line rate
    std::int64_t segment_bytes = 16'384;  // acknowledged bytes per rate decision
  };
  static const OptionTable<Parameters>& options();
  static constexpr FeedbackNeeds kNeeds{.acks = true};
  static constexpr std::uint32_t kHyperAfter = 5;       // decisions without growing delay before hyperactive increase
  static constexpr std::int64_t kHyperFactor = 5;       // N: factor of the additive increase when hyperactive
  static constexpr std::int64_t kRateFloorShare = 100;  // the minimum rate is the line rate divided by this

  // Derived from path and parameters; rates are in bits per second.
  std::int64_t line_rate = 0, additive_increase = 0;
  Time base_rtt = 0, low_rtt = 0, high_rtt = 0;
  // State.
  std::int64_t rate = 0;                  // bits per second, in [line rate / kRateFloorShare, line rate]
  std::int64_t acked = 0;                 // bytes acknowledged since the last decision
  Time previous_rtt = 0, rtt_change = 0;  // at the last decision; moving average of the difference between decisions
  bool has_previous_rtt = false;          // previous_rtt is valid
  std::uint32_t falling_decisions = 0;    // decisions in a row without growing delay, up to kHyperAfter

  void start(const Parameters& parameters, const PathInfo& path, Time) {
    *this = Timely{};
    line_rate = rate = path.line_bits_per_second;
    additive_increase =
        parameters.additive_bps == 0 ? std::max<std::int64_t>(line_rate / 1'000, 1) : parameters.additive_bps;
    base_rtt = std::max<Time>(path.base_rtt_ps, 1);
    low_rtt = parameters.low_ps == 0 ? base_rtt * 3 / 2 : parameters.low_ps;
    high_rtt = std::max(parameters.high_ps == 0 ? base_rtt * 5 : parameters.high_ps, low_rtt);
  }
  std::int64_t window_bytes() const { return kNoWindow; }
  Time gap(std::int64_t packet_bytes) const { return rate == line_rate ? 0 : serialization_ps(packet_bytes, rate); }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& parameters, const Feedback& ack) {
    acked += ack.bytes;
    if (acked < parameters.segment_bytes) return;
    acked = 0;
    if (has_previous_rtt)
      rtt_change = mul_div(rtt_change, kMillion - parameters.gain_ppm, kMillion) +
                   mul_div(ack.rtt - previous_rtt, parameters.gain_ppm, kMillion);  // towards zero, so it can reach 0
    previous_rtt = ack.rtt;
    has_previous_rtt = true;
    rate = std::clamp(next_rate(parameters, ack.rtt), min_rate(), line_rate);
  }
  void notified(const Parameters&, Time) {}
  // TIMELY is for lossless fabrics and names no response to a loss: half of beta, once in a round trip.
  void lost(const Parameters& parameters, Time) {
    rate = std::max(rate - mul_div(rate, parameters.decrease_ppm, kMillion) / 2, min_rate());
  }
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  template <class V>
  static void visit_state(Timely& sender, V&& visitor) {
    visitor.scalar(sender.rate), visitor.scalar(sender.acked), visitor.scalar(sender.falling_decisions),
        visitor.scalar(sender.has_previous_rtt);
    visitor.scalar(sender.previous_rtt), visitor.scalar(sender.rtt_change);
  }

 private:
  std::int64_t min_rate() const { return std::max<std::int64_t>(line_rate / kRateFloorShare, 1); }
  /// Returns the new rate for a measured round trip time.
  std::int64_t next_rate(const Parameters& parameters, Time rtt) {
    if (rtt < low_rtt) {
      falling_decisions = 0;
      return rate + additive_increase;
    }
    if (rtt > high_rtt) {
      falling_decisions = 0;
      return rate - mul_div(rate, mul_div(parameters.decrease_ppm, rtt - high_rtt, rtt), kMillion);
    }
    const std::int64_t gradient = mul_div(std::clamp(rtt_change, -base_rtt, base_rtt), kMillion, base_rtt);  // ppm
    return parameters.variant == Variant::patched ? patched(parameters, rtt, gradient) : original(parameters, gradient);
  }
  std::int64_t original(const Parameters& parameters, std::int64_t gradient) {
    if (gradient > 0) {
      falling_decisions = 0;
      return rate - mul_div(rate, mul_div(parameters.decrease_ppm, gradient, kMillion), kMillion);
    }
    falling_decisions = std::min(falling_decisions + 1, kHyperAfter);
    return rate + (falling_decisions == kHyperAfter ? kHyperFactor : 1) * additive_increase;
  }
  /// Returns (1 - w) delta + rate (1 - beta w (rtt - reference) / reference), where w grows linearly from 0 to 1 as the
  /// gradient grows from -1/4 to 1/4.
  std::int64_t patched(const Parameters& parameters, Time rtt, std::int64_t gradient) const {
    const std::int64_t weight = std::clamp<std::int64_t>(2 * gradient + kMillion / 2, 0, kMillion);
    const std::int64_t error = mul_div(std::min(rtt - low_rtt, 100 * low_rtt), kMillion, low_rtt);
    const std::int64_t share = mul_div(mul_div(parameters.patched_ppm, weight, kMillion), error, kMillion);
    return mul_div(additive_increase, kMillion - weight, kMillion) + rate -
           mul_div(rate, std::min(share, kMillion), kMillion);
  }
};
static_assert(SenderProtocol<Timely>);

}  // namespace manyworlds::core::network
