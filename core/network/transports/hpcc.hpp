// The HPCC sender: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1 and
// sections 3.2, 3.3 and 5.1: the window follows the utilisation of the most loaded link of the path, which in-band
// telemetry reports.
#pragma once

#include <array>

#include "core/base/options.hpp"
#include "core/network/fabric/router.hpp"
#include "core/network/transports/fixed_point.hpp"

namespace manyworlds::core::network {

struct Hpcc {
  struct Parameters {
    std::int64_t utilisation_ppm = 950'000;  // eta
    std::int64_t most_stages = 5;            // maxStage
    std::int64_t expected_flows = 100;       // N in W_AI = W_init (1 - eta) / N
  };
  static const OptionTable<Parameters>& options();
  static constexpr FeedbackNeeds kNeeds{.acks = true, .telemetry = true};
  static constexpr std::int64_t kOne = 1 << 20;                  // fixed-point representation of utilisation 1
  static constexpr std::int64_t kMaxUtilisation = 1'000 * kOne;  // upper limit of a measured utilisation
  static constexpr std::int64_t kWindowFloorShare = 1'000;       // the minimum window is W_init divided by this

  /// The state of a link when the last acknowledged packet began to leave on it.
  struct LinkSample {
    Time at = 0;
    std::int64_t waiting_bytes = 0, sent = 0;
  };

  // Derived from path and parameters; sizes are in bytes, and the additive increase is W_AI.
  std::int64_t packet_bytes = 0, max_window = 0, min_window = 0, additive_increase = 0;
  std::int64_t target = 0;  // eta
  Time base_rtt = 0;        // T
  std::uint32_t links = 0;  // links with telemetry: all but that of the NIC
  // State.
  std::int64_t window = 0, reference = 0;  // W and W_c, bytes, within the smallest and the largest window
  std::int64_t utilisation = kOne;         // U
  std::int64_t stage = 0;                  // incStage
  RoundTrip round;
  bool has_samples = false;  // whether there is a sample of each link
  std::array<LinkSample, kMaxHops> last_samples{};

  void start(const Parameters& parameters, const PathInfo& path, Time) {
    *this = Hpcc{};
    packet_bytes = path.packet_bytes;
    base_rtt = std::max<Time>(path.base_rtt_ps, 1);
    links = path.hops - 1;
    window = reference = max_window = bandwidth_delay_bytes(path);
    min_window = std::max<std::int64_t>(max_window / kWindowFloorShare, 1);
    target = std::max<std::int64_t>(mul_div(parameters.utilisation_ppm, kOne, kMillion), 1);
    additive_increase = std::max<std::int64_t>(
        mul_div(max_window, kMillion - parameters.utilisation_ppm, kMillion) / parameters.expected_flows, 1);
  }
  /// A packet may be sent while less than W is in flight, so the window need not be a multiple of the packet size; the
  /// rate paces the packets.
  std::int64_t window_bytes() const { return window + packet_bytes - 1; }
  /// R = W / T.
  Time gap(std::int64_t bytes) const { return window == max_window ? 0 : mul_div(bytes, base_rtt, window); }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& parameters, const Feedback& ack) {
    if (links == 0) return;  // no switch on the path
    if (has_samples && measure(ack.telemetry)) adapt(parameters, round.ended_by_ack(ack.in_flight));
    for (std::uint32_t i = 0; i < links; ++i)
      last_samples[i] = {ack.telemetry[i].at, ack.telemetry[i].waiting_bytes, ack.telemetry[i].sent_bytes};
    has_samples = true;
  }
  void notified(const Parameters&, Time) {}
  void lost(const Parameters&, Time) {}  // the telemetry of the packets that passed the full queue already reports it
  /// Records of another path say nothing of this one (section 3.2: a sender discards them when pathID changes).
  void path_changed() { has_samples = false; }
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  template <class V>
  static void visit_state(Hpcc& sender, V&& visitor) {
    visitor.scalar(sender.window), visitor.scalar(sender.reference), visitor.scalar(sender.utilisation);
    visitor.scalar(sender.stage), visitor.scalar(sender.round.acks_left), visitor.scalar(sender.has_samples);
    if (!sender.has_samples) return;
    for (std::uint32_t i = 0; i < sender.links; ++i) {
      visitor.age(sender.last_samples[i].at, kNever), visitor.scalar(sender.last_samples[i].waiting_bytes);
      visitor.link_bytes(sender.last_samples[i].sent, i + 1);
    }
  }

 private:
  /// Returns the time in which a link sends that many bytes.
  static Time busy(std::int64_t bytes, std::int64_t bits_per_second) {
    return mul_div(bytes, 8 * kSecond, bits_per_second);
  }
  /// MeasureInflight: updates U with the utilisation u of the most loaded link, averaged over T. Returns false if no
  /// time passed on any link since the last sample.
  bool measure(const Telemetry* telemetry) {
    std::int64_t max_utilisation = 0;
    Time averaging_time = 0;
    for (std::uint32_t i = 0; i < links; ++i) {
      const Telemetry& now = telemetry[i];
      const Time elapsed = now.at - last_samples[i].at;
      if (elapsed <= 0) continue;
      const Time queue = busy(std::min(now.waiting_bytes, last_samples[i].waiting_bytes), now.bits_per_second);
      const Time sending = busy(now.sent_bytes - last_samples[i].sent, now.bits_per_second);
      const std::int64_t full = mul_div(queue, kOne, base_rtt) + mul_div(sending, kOne, elapsed);
      if (full > max_utilisation) max_utilisation = full, averaging_time = std::min(elapsed, base_rtt);
    }
    if (averaging_time == 0) return false;
    utilisation += mul_div(std::min(max_utilisation, kMaxUtilisation) - utilisation, averaging_time, base_rtt);
    return true;
  }
  /// ComputeWind: updates the window, and once per round trip the reference window and the stage.
  void adapt(const Parameters& parameters, bool round_ended) {
    const bool multiplicative = utilisation >= target || stage >= parameters.most_stages;
    const std::int64_t base_window =
        multiplicative ? mul_div(reference, target, std::max<std::int64_t>(utilisation, 1)) : reference;
    window = std::clamp(base_window + additive_increase, min_window, max_window);
    if (!round_ended) return;
    stage = multiplicative ? 0 : stage + 1;
    reference = window;
  }
};
static_assert(SenderProtocol<Hpcc>);

}  // namespace manyworlds::core::network
