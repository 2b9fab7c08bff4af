// HPCC's sender: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1 and sections 3.2, 3.3
// and 5.1: the window follows how full the fullest link of the path is, as the switches tell it.
#pragma once

#include <array>

#include "core/base/options.hpp"
#include "core/network/fabric/fabric.hpp"
#include "core/network/transports/fixed_point.hpp"

namespace manyworlds::core::network {

struct Hpcc {
  struct Parameters {
    std::int64_t utilisation_ppm = 950'000;  // eta
    std::int64_t most_stages = 5;            // maxStage
    std::int64_t expected_flows = 100;       // N of W_AI = W_init (1 - eta) / N
  };
  static const OptionTable<Parameters>& options();
  static constexpr Wants kWants{.acks = true, .telemetry = true};
  static constexpr std::int64_t kOne = 1 << 20;             // shares of a link
  static constexpr std::int64_t kMost = 1'000 * kOne;       // what is fuller counts as this
  static constexpr std::int64_t kWindowFloorShare = 1'000;  // the window never falls below W_init / this

  /// A link when a packet that was acknowledged began to leave on it.
  struct Seen {
    Time at = 0;
    std::int64_t waiting = 0, sent = 0;
  };

  std::int64_t packet = 0, most = 0, least = 0, additive = 0;  // bytes; follow from path and parameters, as does
  std::int64_t target = 0;                                     // eta
  Time base_rtt = 0;                                           // T
  std::uint32_t links = 0;                                     // that are seen: all but the NIC's
  std::int64_t window = 0, reference = 0;                      // W and W_c, bytes, in [least, most]
  std::int64_t utilisation = kOne;                             // U
  std::int64_t stage = 0;                                      // incStage
  Round round;
  bool measured = false;  // seen[] is filled
  std::array<Seen, kMaxHops> seen{};

  void start(const Parameters& with, const PathFacts& path, Time) {
    *this = Hpcc{};
    packet = path.packet_bytes;
    base_rtt = std::max<Time>(path.base_rtt_ps, 1);
    links = path.hops - 1;
    window = reference = most = bandwidth_delay_bytes(path);
    least = std::max<std::int64_t>(most / kWindowFloorShare, 1);
    target = std::max<std::int64_t>(scaled(with.utilisation_ppm, kOne, kMillion), 1);
    additive = std::max<std::int64_t>(scaled(most, kMillion - with.utilisation_ppm, kMillion) / with.expected_flows, 1);
  }
  /// A packet may go while less than W is in flight, so that windows are not cut to whole packets: the rate paces them.
  std::int64_t window_bytes() const { return window + packet - 1; }
  /// R = W / T.
  Time gap(std::int64_t bytes) const { return window == most ? 0 : scaled(bytes, base_rtt, window); }
  void sent(const Parameters&, std::int64_t, Time) {}

  void acknowledged(const Parameters& with, const Feedback& ack) {
    if (links == 0) return;  // there is none but the NIC's own
    if (measured && measure(ack.telemetry)) adapt(with, round.ended_by_ack(ack.in_flight));
    for (std::uint32_t i = 0; i < links; ++i)
      seen[i] = {ack.telemetry[i].at, ack.telemetry[i].waiting, ack.telemetry[i].sent_bytes};
    measured = true;
  }
  void notified(const Parameters&, Time) {}
  void lost(const Parameters&, Time) {}  // the queue that was full is in the telemetry of those that passed it
  Time deadline() const { return kNever; }
  void expire(const Parameters&, Time) {}

  template <class V>
  static void words(Hpcc& of, V&& visitor) {
    visitor.counted(of.window), visitor.counted(of.reference), visitor.counted(of.utilisation);
    visitor.counted(of.stage), visitor.counted(of.round.left), visitor.counted(of.measured);
    if (!of.measured) return;
    for (std::uint32_t i = 0; i < of.links; ++i) {
      visitor.age(of.seen[i].at, kNever), visitor.counted(of.seen[i].waiting);
      visitor.sent_by(of.seen[i].sent, i + 1);
    }
  }

 private:
  /// Time in which a link sends that many bytes.
  static Time busy(std::int64_t bytes, std::int64_t bits_per_second) {
    return scaled(bytes, 8 * kSecond, bits_per_second);
  }
  /// MeasureInflight: u of the fullest link, averaged over T. False if no link sent anything since.
  bool measure(const Telemetry* telemetry) {
    std::int64_t fullest = 0;
    Time over = 0;
    for (std::uint32_t i = 0; i < links; ++i) {
      const Telemetry& now = telemetry[i];
      const Time elapsed = now.at - seen[i].at;
      if (elapsed <= 0) continue;
      const Time queue = busy(std::min(now.waiting, seen[i].waiting), now.bits_per_second);
      const Time sending = busy(now.sent_bytes - seen[i].sent, now.bits_per_second);
      const std::int64_t full = scaled(queue, kOne, base_rtt) + scaled(sending, kOne, elapsed);
      if (full > fullest) fullest = full, over = std::min(elapsed, base_rtt);
    }
    if (over == 0) return false;
    utilisation += scaled(std::min(fullest, kMost) - utilisation, over, base_rtt);
    return true;
  }
  /// ComputeWind.
  void adapt(const Parameters& with, bool round_ended) {
    const bool multiplicative = utilisation >= target || stage >= with.most_stages;
    const std::int64_t from =
        multiplicative ? scaled(reference, target, std::max<std::int64_t>(utilisation, 1)) : reference;
    window = std::clamp(from + additive, least, most);
    if (!round_ended) return;
    stage = multiplicative ? 0 : stage + 1;
    reference = window;
  }
};
static_assert(Protocol<Hpcc>);

}  // namespace manyworlds::core::network
