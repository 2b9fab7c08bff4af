// Swift's sender: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
// SIGCOMM 2020, algorithm 1 and sections 3.2 to 3.6. Hosts are not simulated, so only the window of the fabric's delay
// is here.
#pragma once

#include "core/base/options.hpp"
#include "core/network/transports/fixed_point.hpp"

namespace manyworlds::core::network {

struct Swift {
  struct Parameters {
    std::int64_t base_target_ps = 0;           // 0: 1.5 unloaded round trips
    std::int64_t hop_ps = 0;                   // topology scaling: added per link of the path
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
  static constexpr Wants kWants{.acks = true};
  static constexpr std::int64_t kPacket = 1 << 16;  // the window counts packets in this fixed point

  std::int64_t packet_bytes = 0, most = 0, least = 0;  // follow from path and parameters, as does what is next
  Time fixed_target = 0;                               // without flow scaling
  Time scaling = 0, scaling_alpha = 0, scaling_beta = 0;
  std::int64_t window = 0;  // in [least, most]
  Time rtt = 0;             // the last one, while the window is less than a packet
  bool decreased = false;   // and no packet sent since was acknowledged
  Time decreased_at = 0;

  void start(const Parameters& with, const PathFacts& path, Time) {
    *this = Swift{};
    packet_bytes = path.packet_bytes;
    least = std::max<std::int64_t>(scaled(with.least_window_ppm, kPacket, kMillion), 1);
    const std::int64_t bytes = with.most_bytes == 0 ? open_window_bytes(path) : with.most_bytes;
    window = most = std::max(scaled(bytes, kPacket, packet_bytes), kPacket);
    const Time base = with.base_target_ps == 0 ? path.base_rtt_ps * 3 / 2 : with.base_target_ps;
    fixed_target = base + with.hop_ps * path.hops;
    scaling = with.flow_scaling_ps == 0 ? 5 * base : with.flow_scaling_ps;
    // Section 3.5: alpha / sqrt(window) + beta is 0 at the largest scaled window and fs_range at the smallest.
    const std::int64_t at_most = inverse_root(scaled(with.scaling_most_ppm, kPacket, kMillion));
    const std::int64_t at_least = inverse_root(scaled(with.scaling_least_ppm, kPacket, kMillion));
    scaling_alpha = scaled(scaling, kPacket, std::max<std::int64_t>(at_least - at_most, 1));
    scaling_beta = -scaled(scaling_alpha, at_most, kPacket);
  }
  std::int64_t window_bytes() const { return std::max(window * packet_bytes / kPacket, packet_bytes); }
  /// Below one packet in flight, one every rtt / window.
  Time gap(std::int64_t) const { return window >= kPacket ? 0 : scaled(rtt, kPacket, window); }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& with, const Feedback& ack) {
    if (decreased && ack.now - ack.rtt >= decreased_at) decreased = false;
    if (const Time target = target_delay(); ack.rtt < target)
      increase(with.additive_ppm);
    else if (!decreased)
      decrease(
          std::min(scaled(with.decrease_ppm, ack.rtt - target, std::max<Time>(ack.rtt, 1)), with.most_decrease_ppm),
          ack.now);
    rtt = window < kPacket ? ack.rtt : 0;
  }
  void notified(const Parameters&, Time) {}
  void lost(const Parameters& with, Time now) {
    if (!decreased) decrease(with.most_decrease_ppm, now);
  }
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  Time target_delay() const {
    const Time scaled_by_flows = scaled(scaling_alpha, inverse_root(window), kPacket) + scaling_beta;
    return fixed_target + std::clamp<Time>(scaled_by_flows, 0, scaling);
  }

  template <class V>
  static void words(Swift& of, V&& visitor) {
    visitor.counted(of.window), visitor.counted(of.rtt), visitor.counted(of.decreased);
    if (of.decreased) visitor.age(of.decreased_at, kNever);
  }

 private:
  /// 1 / sqrt(window), both in units of kPacket.
  static std::int64_t inverse_root(std::int64_t of_window) {
    return integer_root(kPacket * kPacket * kPacket / std::max<std::int64_t>(of_window, 1));
  }
  void increase(std::int64_t additive_ppm) {
    const std::int64_t step = scaled(additive_ppm, kPacket, kMillion);  // for one packet acknowledged
    window = std::min(window + (window >= kPacket ? step * kPacket / window : step), most);
  }
  void decrease(std::int64_t by_ppm, Time now) {
    const std::int64_t before = window;
    window = std::max(window - scaled(window, by_ppm, kMillion), least);
    if (window == before) return;
    decreased = true;
    decreased_at = now;
  }
};
static_assert(Protocol<Swift>);

}  // namespace manyworlds::core::network
