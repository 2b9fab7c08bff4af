// The DCTCP sender: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, sections 3.1 and 3.3, with the accounting
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
    bool slow_start = false;         // the window doubles per round trip until the first mark
  };
  static const OptionTable<Parameters>& options();
  static constexpr FeedbackNeeds kNeeds{.acks = true};
  static constexpr std::int64_t kAlphaOne = 1 << 20;  // fixed-point representation of alpha = 1

  std::int64_t packet_bytes = 0, max_window = 0;  // bytes; derived from path and parameters
  std::int64_t window = 0;                        // bytes, from one packet to max_window
  std::int64_t alpha = kAlphaOne;                 // RFC 8257, section 4.2: starts at 1
  std::int64_t increase_credit = 0;               // bytes acknowledged towards the next additive increase
  std::int64_t acked = 0, marked = 0;             // bytes in this round trip
  RoundTrip round;
  bool reduced_this_round = false;  // the window was reduced in this round trip
  bool in_slow_start = false;       // in slow start

  void start(const Parameters& parameters, const PathInfo& path, Time) {
    *this = Dctcp{};
    packet_bytes = path.packet_bytes;
    max_window =
        parameters.most_bytes == 0 ? default_window_bytes(path) : std::max(parameters.most_bytes, packet_bytes);
    window = parameters.start_bytes == 0 ? max_window : std::clamp(parameters.start_bytes, packet_bytes, max_window);
    in_slow_start = parameters.slow_start && window < max_window;
  }
  std::int64_t window_bytes() const { return window; }
  Time gap(std::int64_t) const { return 0; }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& parameters, const Feedback& ack) {
    acked += ack.bytes;
    if (ack.marked) marked += ack.bytes;
    if (round.ended_by_ack(ack.in_flight)) end_round(parameters);
    if (ack.marked) {
      if (!reduced_this_round) reduce_window(alpha);
    } else if (!reduced_this_round) {
      increase(ack.bytes);
    }
  }
  void notified(const Parameters&, Time) {}
  void lost(const Parameters&, Time) {
    if (!reduced_this_round) reduce_window(kAlphaOne);  // halves the window, as TCP does
  }
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  template <class V>
  static void visit_state(Dctcp& sender, V&& visitor) {
    visitor.scalar(sender.window), visitor.scalar(sender.alpha), visitor.scalar(sender.increase_credit);
    visitor.scalar(sender.acked), visitor.scalar(sender.marked), visitor.scalar(sender.round.acks_left);
    visitor.scalar(sender.reduced_this_round), visitor.scalar(sender.in_slow_start);
  }

 private:
  /// alpha <- (1 - g) alpha + g F, equation 1.
  void end_round(const Parameters& parameters) {
    const std::int64_t step =
        mul_div(mul_div(marked, kAlphaOne, std::max<std::int64_t>(acked, 1)) - alpha, parameters.gain_ppm, kMillion);
    alpha = marked == 0 && step == 0 ? 0 : alpha + step;  // rounding would otherwise keep alpha above 0 for ever
    acked = marked = 0;
    reduced_this_round = false;
  }
  /// window <- window (1 - alpha / 2), equation 2.
  void reduce_window(std::int64_t by) {
    window = std::max(window - mul_div(window, by, 2 * kAlphaOne), packet_bytes);
    increase_credit = 0;
    reduced_this_round = true;
    in_slow_start = false;
  }
  void increase(std::int64_t bytes) {
    if (window >= max_window) return;
    if (in_slow_start) {
      window = std::min(window + bytes, max_window);
    } else if ((increase_credit += bytes) >= window) {  // one packet for each acknowledged window
      increase_credit -= window;
      window = std::min(window + packet_bytes, max_window);
    }
    if (window < max_window) return;
    increase_credit = 0;
    in_slow_start = false;
  }
};
static_assert(SenderProtocol<Dctcp>);

}  // namespace manyworlds::core::network
