// The Swift sender: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
// SIGCOMM 2020, algorithm 1 and sections 3.2 to 3.6. Hosts are not simulated, so there is only the congestion window
// for fabric delay, not the one for endpoint delay.
#pragma once

#include "core/base/options.hpp"
#include "core/network/transports/fixed_point.hpp"

namespace manyworlds::core::network {

struct Swift {
  struct Parameters {
    std::int64_t base_target_ps = 0;           // 0: 1.5 unloaded round trips
    std::int64_t hop_ps = 0;                   // topology scaling: added to the target per link of the path
    std::int64_t flow_scaling_ps = 0;          // fs_range; 0: five base targets
    std::int64_t scaling_least_ppm = 100'000;  // fs_min_cwnd, packets
    std::int64_t scaling_most_ppm = 100'000'000;
    std::int64_t additive_ppm = 1'000'000;  // packets per round trip
    std::int64_t decrease_ppm = 800'000;    // beta
    std::int64_t most_decrease_ppm = 500'000;
    std::int64_t least_window_ppm = 1'000;  // packets
    std::int64_t most_bytes = 0;            // 0: 1.5 bandwidth-delay products
  };
  static const OptionTable<Parameters>& options();
  static constexpr FeedbackNeeds kNeeds{.acks = true};
  static constexpr std::int64_t kPacket = 1 << 16;  // fixed-point representation of a window of one packet

  // Derived from path and parameters.
  std::int64_t packet_bytes = 0, max_window = 0, min_window = 0;  // largest and smallest window in fixed point
  Time fixed_target = 0;                                          // target delay without flow scaling
  Time flow_scaling_range = 0, scaling_alpha = 0, scaling_beta = 0;
  // State.
  std::int64_t window = 0;  // fixed point, within the smallest and the largest window
  Time rtt = 0;             // the last round trip time while the window is less than a packet, else 0
  bool decreased = false;   // the window was decreased and no packet sent since was acknowledged
  Time decreased_at = 0;

  void start(const Parameters& parameters, const PathInfo& path, Time) {
    *this = Swift{};
    packet_bytes = path.packet_bytes;
    min_window = std::max<std::int64_t>(mul_div(parameters.least_window_ppm, kPacket, kMillion), 1);
    const std::int64_t bytes = parameters.most_bytes == 0 ? default_window_bytes(path) : parameters.most_bytes;
    window = max_window = std::max(mul_div(bytes, kPacket, packet_bytes), kPacket);
    const Time base = parameters.base_target_ps == 0 ? path.base_rtt_ps * 3 / 2 : parameters.base_target_ps;
    fixed_target = base + parameters.hop_ps * path.hops;
    flow_scaling_range = parameters.flow_scaling_ps == 0 ? 5 * base : parameters.flow_scaling_ps;
    // Section 3.5: alpha / sqrt(window) + beta is 0 at the largest scaled window and fs_range at the smallest.
    const std::int64_t root_at_max = inverse_root(mul_div(parameters.scaling_most_ppm, kPacket, kMillion));
    const std::int64_t root_at_min = inverse_root(mul_div(parameters.scaling_least_ppm, kPacket, kMillion));
    scaling_alpha = mul_div(flow_scaling_range, kPacket, std::max<std::int64_t>(root_at_min - root_at_max, 1));
    scaling_beta = -mul_div(scaling_alpha, root_at_max, kPacket);
  }
  std::int64_t window_bytes() const { return std::max(window * packet_bytes / kPacket, packet_bytes); }
  /// With a window below one packet, one packet is sent every rtt / window.
  Time gap(std::int64_t) const { return window >= kPacket ? 0 : mul_div(rtt, kPacket, window); }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& parameters, const Feedback& ack) {
    if (decreased && ack.now - ack.rtt >= decreased_at) decreased = false;
    if (const Time target = target_delay(); ack.rtt < target)
      increase(parameters.additive_ppm);
    else if (!decreased)
      decrease(std::min(mul_div(parameters.decrease_ppm, ack.rtt - target, std::max<Time>(ack.rtt, 1)),
                        parameters.most_decrease_ppm),
               ack.now);
    rtt = window < kPacket ? ack.rtt : 0;
  }
  void notified(const Parameters&, Time) {}
  void lost(const Parameters& parameters, Time now) {
    if (!decreased) decrease(parameters.most_decrease_ppm, now);
  }
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  Time target_delay() const {
    const Time scaled_by_flows = mul_div(scaling_alpha, inverse_root(window), kPacket) + scaling_beta;
    return fixed_target + std::clamp<Time>(scaled_by_flows, 0, flow_scaling_range);
  }

  template <class V>
  static void visit_state(Swift& sender, V&& visitor) {
    visitor.scalar(sender.window), visitor.scalar(sender.rtt), visitor.scalar(sender.decreased);
    if (sender.decreased) visitor.age(sender.decreased_at, kNever);
  }

 private:
  /// 1 / sqrt(window), both in units of kPacket.
  static std::int64_t inverse_root(std::int64_t scaled_window) {
    return integer_root(kPacket * kPacket * kPacket / std::max<std::int64_t>(scaled_window, 1));
  }
  void increase(std::int64_t additive_ppm) {
    const std::int64_t step = mul_div(additive_ppm, kPacket, kMillion);  // the increase per round trip
    window = std::min(window + (window >= kPacket ? step * kPacket / window : step), max_window);
  }
  void decrease(std::int64_t by_ppm, Time now) {
    const std::int64_t before = window;
    window = std::max(window - mul_div(window, by_ppm, kMillion), min_window);
    if (window == before) return;
    decreased = true;
    decreased_at = now;
  }
};
static_assert(SenderProtocol<Swift>);

}  // namespace manyworlds::core::network
