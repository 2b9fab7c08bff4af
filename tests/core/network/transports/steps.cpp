// Each congestion control's equations, one step at a time, against the figures its paper gives by hand.
#include <catch2/catch.hpp>

#include <cmath>

#include "core/network/transports/dctcp.hpp"
#include "core/network/transports/hpcc.hpp"
#include "core/network/transports/nscc.hpp"
#include "core/network/transports/swift.hpp"
#include "core/network/transports/timely.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;

namespace {

constexpr std::int64_t kPacketBytes = 4'160;
const PathInfo kPath{400'000'000'000, kPacketBytes, 4'166'400, 2};  // a bandwidth-delay product of 208,320 B
constexpr std::int64_t kBandwidthDelay = 208'320;
constexpr std::int64_t kOpenWindow = 76 * kPacketBytes;  // 312,480 B and a bit, in whole packets

template <class P>
P started(const typename P::Parameters& with = {}, const PathInfo& path = kPath) {
  P sender;
  sender.start(with, path, 0);
  return sender;
}

Feedback ack(Time now, Time rtt, std::uint32_t in_flight, bool marked = false) {
  return {now, rtt, kPacketBytes, in_flight, marked, nullptr};
}

}  // namespace

TEST_CASE("products that overflow 64 bits on the way are exact, and roots are the floor of roots") {
  CHECK(mul_div(INT64_MAX, 3, 3) == INT64_MAX);
  CHECK(mul_div(-INT64_MAX, 1'000'000, 2'000'000) == -(INT64_MAX / 2));
  CHECK(mul_div(7, 3, 2) == 10);
  CHECK(mul_div(-7, 3, 2) == -10);
  for (std::int64_t value = 0; value < 100'000; ++value) {
    const std::int64_t root = integer_root(value);
    REQUIRE((root * root <= value && (root + 1) * (root + 1) > value));
  }
  CHECK(integer_root(INT64_MAX) == 3'037'000'499);
  CHECK(integer_root(std::int64_t{1} << 48) == std::int64_t{1} << 24);
}

TEST_CASE("a round ends with the first acknowledgement of a packet sent after it began") {
  RoundTrip round;
  CHECK(round.ended_by_ack(3));
  for (int i = 0; i < 3; ++i) CHECK_FALSE(round.ended_by_ack(9));
  CHECK(round.ended_by_ack(0));
  CHECK(round.ended_by_ack(0));
}

TEST_CASE("DCTCP halves once per round trip while alpha is 1 and every packet is marked") {
  const Dctcp::Parameters with;
  auto sender = started<Dctcp>();
  CHECK(sender.window_bytes() == kOpenWindow);
  std::int64_t expected = kOpenWindow;
  for (int round = 0; round < 4; ++round) {
    expected /= 2;
    for (std::uint32_t packet = 0; packet < 8; ++packet) {
      sender.acknowledged(with, ack(0, 0, 7, true));
      CHECK(sender.window_bytes() == expected);
    }
  }
  CHECK(sender.alpha == Dctcp::kAlphaOne);
}

TEST_CASE("DCTCP's alpha is the moving average of the marked share, and the window loses half of it") {
  const Dctcp::Parameters with;  // g = 1/16
  auto sender = started<Dctcp>();
  sender.acknowledged(with, ack(0, 0, 9));  // ends the first, empty round: nothing of it was marked
  CHECK(sender.alpha == Dctcp::kAlphaOne * 15 / 16);
  for (int i = 0; i < 9; ++i) sender.acknowledged(with, ack(0, 0, 9, i < 5));
  const std::int64_t cut_by = Dctcp::kAlphaOne * 15 / 16;  // the first mark met that alpha
  CHECK(sender.window_bytes() == kOpenWindow - mul_div(kOpenWindow, cut_by, 2 * Dctcp::kAlphaOne));
  sender.acknowledged(with, ack(0, 0, 9));  // ends a round of ten with five marks
  CHECK(sender.alpha == Dctcp::kAlphaOne * 15 * 15 / 16 / 16 + Dctcp::kAlphaOne / 2 / 16);
}

TEST_CASE("DCTCP adds one packet per unmarked window, or doubles in slow start until the first mark") {
  const Dctcp::Parameters additive{.start_bytes = 10 * kPacketBytes};
  auto sender = started<Dctcp>(additive);
  for (int i = 0; i < 10 + 11 + 12; ++i) sender.acknowledged(additive, ack(0, 0, 9));
  CHECK(sender.window_bytes() == 13 * kPacketBytes);

  const Dctcp::Parameters doubling{.start_bytes = 4 * kPacketBytes, .slow_start = true};
  sender = started<Dctcp>(doubling);
  for (int i = 0; i < 4 + 8 + 16; ++i) sender.acknowledged(doubling, ack(0, 0, 9));
  CHECK(sender.window_bytes() == 32 * kPacketBytes);
  sender.acknowledged(doubling, ack(0, 0, 40, true));
  const std::int64_t after = sender.window_bytes();
  CHECK(after < 32 * kPacketBytes);
  for (int i = 0; i < 41; ++i) sender.acknowledged(doubling, ack(0, 0, 40));
  CHECK(sender.window_bytes() <= after + 2 * kPacketBytes);  // additive from now on
}

TEST_CASE("Swift's decrease is beta times the excess share of the delay, at most max_mdf, once per round trip") {
  const Swift::Parameters with;
  auto sender = started<Swift>();
  const std::int64_t before = sender.window;
  const Time target = sender.target_delay();
  const Time rtt = 2 * target;  // excess share 1/2, beta 0.8: the window loses 0.4 of itself
  sender.acknowledged(with, ack(100 * rtt, rtt, 70));
  CHECK(sender.window == before - before * 4 / 10);
  sender.acknowledged(with, ack(100 * rtt + 1, rtt, 69));
  CHECK(sender.window == before - before * 4 / 10);  // that packet left before the decrease
  const std::int64_t second = sender.window;
  sender.acknowledged(with, ack(103 * rtt, 100 * rtt / 50, 60));  // and this one after it
  CHECK(sender.window < second);

  sender = started<Swift>();
  sender.acknowledged(with, ack(1'000 * rtt, 10 * target, 70));  // 0.8 x 0.9 is above max_mdf
  CHECK(sender.window == before - before / 2);
}

TEST_CASE("Swift adds one packet per round trip") {
  const Swift::Parameters with{.most_bytes = 1 << 20};
  auto sender = started<Swift>(with);
  sender.window = 20 * Swift::kPacket;
  for (int i = 0; i < 20; ++i) sender.acknowledged(with, ack(0, kPath.base_rtt_ps, 19));
  // dw = 1/w per packet: after n packets the square has grown by 2n
  const double packets = static_cast<double>(sender.window) / static_cast<double>(Swift::kPacket);
  CHECK(packets == Approx(std::sqrt(20.0 * 20 + 2 * 20)).epsilon(1e-4));
}

TEST_CASE("Swift's target grows from its base at large windows to base and range at small ones, as 1 / sqrt(window)") {
  const Swift::Parameters with{.base_target_ps = 6'000'000, .hop_ps = 250'000, .flow_scaling_ps = 24'000'000};
  auto sender = started<Swift>(with);
  const auto target_at = [&](double packets) {
    sender.window = std::llround(packets * static_cast<double>(Swift::kPacket));
    return static_cast<double>(sender.target_delay());
  };
  const double base = 6'000'000 + 2 * 250'000;
  CHECK(target_at(100) == Approx(base).epsilon(1e-3));
  CHECK(target_at(400) == Approx(base).epsilon(1e-9));
  CHECK(target_at(0.1) == Approx(base + 24'000'000).epsilon(1e-3));
  CHECK(target_at(0.02) == Approx(base + 24'000'000).epsilon(1e-9));
  for (const double packets : {0.3, 1.0, 4.0, 25.0})
    CHECK(target_at(packets) ==
          Approx(base + 24'000'000 * (1 / std::sqrt(packets) - 0.1) / (std::sqrt(10.0) - 0.1)).epsilon(1e-3));
}

TEST_CASE("Swift below one packet sends one every rtt over window") {
  const Swift::Parameters with;
  auto sender = started<Swift>();
  sender.window = Swift::kPacket / 4;
  const Time rtt = sender.target_delay() - 1;
  sender.acknowledged(with, ack(0, rtt, 0));
  CHECK(sender.window == Swift::kPacket / 4 + Swift::kPacket);  // additive increase is per packet there
  CHECK(sender.gap(kPacketBytes) == 0);
  sender.window = Swift::kPacket / 4;
  sender.decreased = true, sender.decreased_at = 1'000 * rtt;
  sender.acknowledged(with, ack(rtt, 100 * rtt, 0));  // delayed, but already decreased: nothing changes
  CHECK(sender.window == Swift::kPacket / 4);
  CHECK(sender.gap(kPacketBytes) == 4 * 100 * rtt);
  CHECK(sender.window_bytes() == kPacketBytes);
}

TEST_CASE("TIMELY follows its gradient between the thresholds and its round trip beyond them") {
  const Timely::Parameters with{
      .variant = Timely::Variant::original, .gain_ppm = 500'000, .decrease_ppm = 800'000, .segment_bytes = 1};
  auto sender = started<Timely>(with);
  const Time base = kPath.base_rtt_ps, low = base * 3 / 2, high = base * 5;
  const std::int64_t line = kPath.line_bits_per_second, delta = line / 1'000;
  sender.rate = line / 2;
  sender.acknowledged(with, ack(0, low - 1, 9));
  CHECK(sender.rate == line / 2 + delta);
  sender.acknowledged(with, ack(0, 2 * high, 9));  // 1 - 0.8 (1 - 1/2)
  CHECK(sender.rate == (line / 2 + delta) * 6 / 10);

  sender = started<Timely>(with);
  sender.rate = line / 2;
  sender.acknowledged(with, ack(0, 2 * base, 9));  // no gradient yet
  CHECK(sender.rate == line / 2 + delta);
  sender.acknowledged(with, ack(0, 2 * base + base / 2, 9));  // gradient 1/2 x 1/2: 1 - 0.8 / 4
  CHECK(sender.rate == (line / 2 + delta) * 8 / 10);
  sender = started<Timely>(with);
  sender.rate = line / 2;
  for (int i = 0; i < 4; ++i) sender.acknowledged(with, ack(0, 2 * base, 9));
  CHECK(sender.rate == line / 2 + 4 * delta);
  sender.acknowledged(with, ack(0, 2 * base, 9));  // the fifth in a row: hyperactive
  CHECK(sender.rate == line / 2 + 9 * delta);
}

TEST_CASE("patched TIMELY rests where delta is beta times rate times error, and weighs by the gradient") {
  const Timely::Parameters with{.patched_ppm = 8'000, .segment_bytes = 1};
  const Time low = kPath.base_rtt_ps * 3 / 2;
  const std::int64_t line = kPath.line_bits_per_second, delta = line / 1'000;
  for (const std::int64_t sharing : {2, 4, 8}) {
    auto sender = started<Timely>(with);
    sender.rate = line / sharing;
    const Time rtt = low + low * sharing / 8;  // delta / (beta rate) = sharing / 8
    sender.acknowledged(with, ack(0, rtt, 9));
    CHECK(std::abs(sender.rate - line / sharing) <= 2'000'000);  // of 400 Gb/s: shares are in millionths
    const std::int64_t at_rest = sender.rate;
    sender.acknowledged(with, ack(0, rtt + kPath.base_rtt_ps, 9));  // gradient 0.875: full weight
    const double error = static_cast<double>(rtt + kPath.base_rtt_ps - low) / static_cast<double>(low);
    CHECK(static_cast<double>(sender.rate) == Approx(static_cast<double>(at_rest) * (1 - 0.008 * error)).epsilon(1e-5));
    sender = started<Timely>(with);
    sender.rate = line / sharing;
    sender.acknowledged(with, ack(0, rtt + kPath.base_rtt_ps, 9));
    const std::int64_t before = sender.rate;
    sender.acknowledged(with, ack(0, rtt, 9));  // falling fast: no weight
    CHECK(sender.rate == before + delta);
  }
}

namespace {

// Telemetry of one link of the line rate that was as full as asked for a whole base round trip.
struct Watched {
  Telemetry row{0, 0, 0, kPath.line_bits_per_second};
  void round_trip(double sending, double waiting_bytes) {
    row.at += kPath.base_rtt_ps;
    row.sent_bytes += std::llround(sending * kBandwidthDelay);
    row.waiting_bytes = std::llround(waiting_bytes * kBandwidthDelay);
  }
};

Feedback told(const Watched& link, std::uint32_t in_flight) {
  return {link.row.at, kPath.base_rtt_ps, kPacketBytes, in_flight, false, &link.row};
}

constexpr std::int64_t kHpccAdditive = kBandwidthDelay * 5 / 100 / 100;

}  // namespace

TEST_CASE("HPCC's window at twice its target utilisation is half the reference and the additive step") {
  const Hpcc::Parameters with;
  auto sender = started<Hpcc>();
  CHECK(sender.window == kBandwidthDelay);
  CHECK(sender.gap(kPacketBytes) == 0);
  Watched link;
  link.round_trip(1, 0.9);
  sender.acknowledged(with, told(link, 40));
  CHECK(sender.window == kBandwidthDelay);  // one row of telemetry is no rate yet
  link.round_trip(1, 0.9);                  // u = 1.9 = 2 eta
  sender.acknowledged(with, told(link, 40));
  CHECK(sender.window == kBandwidthDelay / 2 + kHpccAdditive);
  CHECK(sender.gap(kPacketBytes) == mul_div(kPacketBytes, kPath.base_rtt_ps, sender.window));
  for (int i = 0; i < 40; ++i) {
    link.round_trip(1, 0.9);  // the same round: from the same reference, which this round set
    sender.acknowledged(with, told(link, 40));
    CHECK(sender.window == (kBandwidthDelay / 2 + kHpccAdditive) / 2 + kHpccAdditive);
  }
  link.round_trip(1, 0.9);
  sender.acknowledged(with, told(link, 40));
  const std::int64_t reference = sender.window;
  link.round_trip(1, 0.9);
  sender.acknowledged(with, told(link, 40));
  CHECK(sender.window == reference / 2 + kHpccAdditive);
}

TEST_CASE("HPCC takes the lesser of two queues, so that a packet that just came does not count as one") {
  const Hpcc::Parameters with;
  auto sender = started<Hpcc>();
  Watched link;
  link.round_trip(0.95, 0);
  sender.acknowledged(with, told(link, 10));
  link.round_trip(0.95, 3);
  sender.acknowledged(with, told(link, 10));
  CHECK(std::abs(sender.window - (kBandwidthDelay + kHpccAdditive)) <= kHpccAdditive + 1);  // u = eta, no queue
}

TEST_CASE("HPCC adds for five round trips below its target and then takes the measured step") {
  const Hpcc::Parameters with;
  auto sender = started<Hpcc>();
  sender.window = sender.reference = kBandwidthDelay / 4;
  Watched link;
  link.round_trip(0.475, 0);
  sender.acknowledged(with, told(link, 0));
  for (std::int64_t stage = 1; stage <= 5; ++stage) {
    link.round_trip(0.475, 0);
    sender.acknowledged(with, told(link, 0));
    CHECK(sender.window == kBandwidthDelay / 4 + stage * kHpccAdditive);
  }
  const std::int64_t reference = sender.window;
  link.round_trip(0.475, 0);  // half the target: twice the window
  sender.acknowledged(with, told(link, 0));
  CHECK(std::abs(sender.window - (2 * reference + kHpccAdditive)) <= 1);
  CHECK(sender.stage == 0);
}

TEST_CASE("NSCC's four quadrants: fair increase, proportional and fast increase, decrease, nothing") {
  const Nscc::Parameters with;
  const Time base = kPath.base_rtt_ps;  // and the target
  const auto at_window = [&](std::int64_t packets) {
    auto sender = started<Nscc>();
    sender.window = packets * kPacketBytes;
    return sender;
  };
  // Parameters scale with the bandwidth-delay product over that of 100 Gb/s and 12 us.
  const double scale = kBandwidthDelay / 150'000.0;
  const double eta = 0.15 * kPacketBytes * scale;

  auto sender = at_window(20);  // unmarked, delayed: fair increase and the constant
  for (int i = 0; i < 20; ++i) sender.acknowledged(with, ack(i < 19 ? 0 : base, 2 * base, 19));
  double packets = 20;  // five packets per window; in effect after more than eight packets, and after a round trip
  for (const int acked : {9, 9, 2}) packets += acked * 5 * scale / packets;
  CHECK(static_cast<double>(sender.window_bytes()) == Approx(packets * kPacketBytes + eta).epsilon(1e-4));

  sender = at_window(20);  // unmarked, half the target: four packets times the half over 12 us
  for (int i = 0; i < 20; ++i) sender.acknowledged(with, ack(i < 19 ? 0 : base, base * 3 / 2, 19));
  const double half = static_cast<double>(base) / 2 / 12e6;
  packets = 20;
  for (const int acked : {9, 9, 2}) packets += acked * 4 * scale * half / packets;
  CHECK(static_cast<double>(sender.window_bytes()) == Approx(packets * kPacketBytes + eta).epsilon(1e-4));

  sender = at_window(20);  // unmarked, no delay at all for a window: each byte brings a quarter of itself
  for (int i = 0; i < 21; ++i) sender.acknowledged(with, ack(0, base, 19));
  const std::int64_t before = sender.window_bytes();
  sender.acknowledged(with, ack(0, base, 19));
  CHECK(std::abs(sender.window_bytes() - before - std::llround(kPacketBytes * scale / 4)) <= 1);

  sender = at_window(20);  // marked, little delay: nothing
  for (int i = 0; i < 7; ++i) sender.acknowledged(with, ack(0, base * 3 / 2, 19, true));
  CHECK(sender.window_bytes() == 20 * kPacketBytes);

  sender = at_window(20);  // marked and delayed: by gamma times the excess share of the average, once per round trip
  sender.average_delay = 2 * base;
  sender.acknowledged(with, ack(0, 3 * base, 19, true));
  CHECK(sender.window_bytes() == 20 * kPacketBytes * 6 / 10);
  sender.acknowledged(with, ack(base, 3 * base, 19, true));
  CHECK(sender.window_bytes() <= 20 * kPacketBytes * 6 / 10 + 900);  // at most the constant
  sender = at_window(20);
  sender.average_delay = 100 * base;
  sender.acknowledged(with, ack(0, 3 * base, 19, true));
  CHECK(sender.window_bytes() == 20 * kPacketBytes / 2);  // never by more than half
}

TEST_CASE("NSCC's quick adapt makes the window what came through in a period, and ignores the marks of what is older") {
  const Nscc::Parameters with;
  const Time base = kPath.base_rtt_ps, period = 2 * base;
  auto sender = started<Nscc>();
  sender.acknowledged(with, ack(0, 6 * base, 70, true));  // a period begins
  for (int i = 1; i <= 5; ++i) sender.acknowledged(with, ack(i, 6 * base, 70, true));
  sender.acknowledged(with, ack(period + 1, 6 * base, 64, true));  // five targets late, six packets since
  CHECK(sender.window_bytes() == 6 * kPacketBytes);
  for (int i = 0; i < 63; ++i) {
    sender.acknowledged(with, ack(10 * period + i, 6 * base, 60, true));
    REQUIRE(sender.window_bytes() == 6 * kPacketBytes);
  }

  sender = started<Nscc>();  // no quick adapt when an eighth of the largest window came through
  sender.acknowledged(with, ack(0, 6 * base, 70, true));
  for (int i = 1; i <= 10; ++i) sender.acknowledged(with, ack(i, 6 * base, 70, true));
  const std::int64_t before = sender.window_bytes();
  sender.acknowledged(with, ack(period + 1, 6 * base, 64, true));
  CHECK(sender.window_bytes() >= before / 2);
}
