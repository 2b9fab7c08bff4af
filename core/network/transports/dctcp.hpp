// DCTCP's sender: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, sections 3.1 and 3.3, with the bookkeeping
// of RFC 8257, section 3.3: the window shrinks with the share of bytes that were marked in the last round trip.
#pragma once

#include "core/base/options.hpp"
#include "core/network/transports/fixed_point.hpp"

namespace manyworlds::core::network {

struct Dctcp {
  struct Parameters {
    std::int64_t gain_ppm = 62'500;  // g
    std::int64_t start_bytes = 0;    // 0: most_bytes
    std::int64_t most_bytes = 0;     // 0: 1.5 bandwidth-delay products
    bool slow_start = false;         // doubles per round trip until the first mark
  };
  static const OptionTable<Parameters>& options();
  static constexpr Wants kWants{.acks = true};
  static constexpr std::int64_t kAlphaOne = 1 << 20;  // alpha is a fixed-point share

  std::int64_t packet = 0, most = 0;   // bytes; follow from path and parameters
  std::int64_t window = 0;             // bytes, in [packet, most]
  std::int64_t alpha = kAlphaOne;      // RFC 8257, section 4.2: starts at 1
  std::int64_t credit = 0;             // acknowledged towards the next packet of additive increase
  std::int64_t acked = 0, marked = 0;  // bytes in this round trip
  Round round;
  bool was_cut = false;  // in this round trip
  bool doubling = false;

  void start(const Parameters& with, const PathFacts& path, Time) {
    *this = Dctcp{};
    packet = path.packet_bytes;
    most = with.most_bytes == 0 ? open_window_bytes(path) : std::max(with.most_bytes, packet);
    window = with.start_bytes == 0 ? most : std::clamp(with.start_bytes, packet, most);
    doubling = with.slow_start && window < most;
  }
  std::int64_t window_bytes() const { return window; }
  Time gap(std::int64_t) const { return 0; }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& with, const Feedback& ack) {
    acked += ack.bytes;
    if (ack.marked) marked += ack.bytes;
    if (round.ended_by_ack(ack.in_flight)) end_round(with);
    if (ack.marked) {
      if (!was_cut) cut(alpha);
    } else if (!was_cut) {
      increase(ack.bytes);
    }
  }
  void notified(const Parameters&, Time) {}
  void lost(const Parameters&, Time) {
    if (!was_cut) cut(kAlphaOne);  // as TCP: by half
  }
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  template <class V>
  static void words(Dctcp& of, V&& visitor) {
    visitor.counted(of.window), visitor.counted(of.alpha), visitor.counted(of.credit);
    visitor.counted(of.acked), visitor.counted(of.marked), visitor.counted(of.round.left);
    visitor.counted(of.was_cut), visitor.counted(of.doubling);
  }

 private:
  /// alpha <- (1 - g) alpha + g F, equation 1.
  void end_round(const Parameters& with) {
    const std::int64_t step =
        scaled(scaled(marked, kAlphaOne, std::max<std::int64_t>(acked, 1)) - alpha, with.gain_ppm, kMillion);
    alpha = marked == 0 && step == 0 ? 0 : alpha + step;  // a defined floor, or it would never come to rest
    acked = marked = 0;
    was_cut = false;
  }
  /// window <- window (1 - alpha / 2), equation 2.
  void cut(std::int64_t by) {
    window = std::max(window - scaled(window, by, 2 * kAlphaOne), packet);
    credit = 0;
    was_cut = true;
    doubling = false;
  }
  void increase(std::int64_t bytes) {
    if (window >= most) return;
    if (doubling) {
      window = std::min(window + bytes, most);
    } else if ((credit += bytes) >= window) {  // one packet per window acknowledged
      credit -= window;
      window = std::min(window + packet, most);
    }
    if (window < most) return;
    credit = 0;
    doubling = false;
  }
};
static_assert(Protocol<Dctcp>);

}  // namespace manyworlds::core::network
