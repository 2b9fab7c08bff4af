// Senders of every protocol on drawn feedback, absurd ones included: nothing over- or underflows, and a sender restored
// from its words goes on as the original did.
#include <catch2/catch.hpp>

#include <array>
#include <random>

#include "core/network/transports/dcqcn.hpp"
#include "core/network/transports/dctcp.hpp"
#include "core/network/transports/hpcc.hpp"
#include "core/network/transports/nscc.hpp"
#include "core/network/transports/static_window.hpp"
#include "core/network/transports/swift.hpp"
#include "core/network/transports/timely.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;

namespace {

constexpr std::uint32_t kHops = 5;

/// Words relative to an instant and to what each link has sent.
struct Writer {
  Time now;
  const std::array<Telemetry, kHops>& links;
  std::vector<std::int64_t> words{};

  template <class Value>
  void scalar(Value value) {
    words.push_back(static_cast<std::int64_t>(value));
  }
  void deadline(Time at) { words.push_back(at == kNever ? kNever : at - now); }
  void future_time(Time at) { words.push_back(std::max<Time>(at - now, 0)); }
  void age(Time at, Time max_age) { words.push_back(std::min(now - at, max_age)); }
  void link_bytes(std::int64_t bytes, std::uint32_t hop) { words.push_back(links[hop - 1].sent_bytes - bytes); }
};

struct Reader {
  Time now;
  const std::array<Telemetry, kHops>& links;
  const std::vector<std::int64_t>& words;
  std::size_t at_word = 0;

  template <class Value>
  void scalar(Value& value) {
    value = static_cast<Value>(words.at(at_word++));
  }
  void deadline(Time& at) {
    at = words.at(at_word++);
    if (at != kNever) at += now;
  }
  void future_time(Time& at) { at = now + words.at(at_word++); }
  void age(Time& at, Time) { at = now - words.at(at_word++); }
  void link_bytes(std::int64_t& bytes, std::uint32_t hop) { bytes = links[hop - 1].sent_bytes - words.at(at_word++); }
};

/// What happens to a sender next, with times relative to now.
struct Step {
  enum class What { acknowledged, notified, lost, sent } what;
  Time after, rtt;
  std::uint32_t in_flight;
  bool marked;
  std::array<std::int64_t, kHops> sent, waiting;
};

class Drawn {
 public:
  Drawn(std::uint64_t seed, Time base_rtt) : random_(seed), base_rtt_(base_rtt) {}

  std::int64_t any(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// Phases of calm, of congestion and of nonsense, long enough to reach floors and ceilings.
  Step step() {
    if (left_ == 0) left_ = any(1, 2'000), mood_ = any(0, 3);
    --left_;
    Step step{};
    const std::int64_t kind = any(0, 199);
    step.what = kind == 0   ? Step::What::lost
                : kind == 1 ? Step::What::notified
                : kind < 20 ? Step::What::sent
                            : Step::What::acknowledged;
    step.after = mood_ == 3 ? any(0, 1) * any(0, kMillisecond) : any(0, base_rtt_ / 10);
    step.rtt = mood_ == 0   ? base_rtt_
               : mood_ == 1 ? base_rtt_ + any(0, base_rtt_)
               : mood_ == 2 ? base_rtt_ * any(2, 100)
                            : any(0, 1) * any(0, kSecond);
    step.in_flight = static_cast<std::uint32_t>(mood_ == 3 ? any(0, 500) : any(0, 60));
    step.marked = mood_ == 2 || (mood_ != 0 && any(0, 2) == 0);
    for (std::size_t i = 0; i < kHops; ++i) {
      step.sent[i] = mood_ == 3 ? any(0, 1ll << 40) : any(0, 20) * 4'160;
      step.waiting[i] = mood_ == 0 ? 0 : any(0, mood_ == 3 ? 1ll << 40 : 4'000'000);
    }
    return step;
  }

 private:
  std::mt19937_64 random_;
  Time base_rtt_;
  std::int64_t left_ = 0, mood_ = 0;
};

/// A sender, its clock and the links it hears of.
template <class P>
struct SenderFixture {
  typename P::Parameters with;
  P sender;
  Time now = 0;
  std::array<Telemetry, kHops> links{};

  void go(const Step& step) {
    for (const Time until = now + step.after; sender.deadline() <= until;) {
      now = sender.deadline();
      sender.expire(with, now);
    }
    now = std::max(now, now + step.after);
    for (std::size_t i = 0; i < kHops; ++i)
      links[i] = {now, step.waiting[i], links[i].sent_bytes + step.sent[i], 400'000'000'000};
    if (step.what == Step::What::lost) sender.lost(with, now);
    if (step.what == Step::What::notified) sender.notified(with, now);
    if (step.what == Step::What::sent) sender.sent(with, 4'160, now);
    if (step.what == Step::What::acknowledged)
      sender.acknowledged(with, {now, step.rtt, 4'160, step.in_flight, step.marked, links.data()});
  }
  std::vector<std::int64_t> visit_state() {
    Writer writer{now, links};
    P::visit_state(sender, writer);
    return writer.words;
  }
};

}  // namespace

TEMPLATE_TEST_CASE(
    "a sender keeps its window and its rate in bounds on 100,000 drawn steps, and starts anew from words", "",
    StaticWindow, Dcqcn, Dctcp, Swift, Timely, Hpcc, Nscc) {
  for (const auto& [line, base_rtt] : {std::pair<std::int64_t, Time>{400'000'000'000, 4'166'400},
                                       {1'600'000'000'000, 900'000},
                                       {1'000'000'000, 3 * kMillisecond}}) {
    const PathInfo path{line, 4'160, base_rtt, kHops + 1};
    const std::int64_t most_window = 2 * line / 8 * base_rtt / kSecond + 8 * 4'160;
    Drawn drawn(static_cast<std::uint64_t>(line), base_rtt);
    SenderFixture<TestType> fixture;
    if constexpr (std::is_same_v<TestType, StaticWindow>) fixture.with.window_bytes = 100'000;
    fixture.sender.start(fixture.with, path, fixture.now);
    SenderFixture<TestType> twin = fixture;  // restored from words every so often, elsewhere in time
    std::int64_t changes = 0;
    std::int64_t before = fixture.sender.window_bytes();
    for (int i = 0; i < 33'334; ++i) {
      const Step step = drawn.step();
      fixture.go(step);
      twin.go(step);
      const std::int64_t window = fixture.sender.window_bytes();
      REQUIRE(window >= 4'160);
      REQUIRE((window == kNoWindow || window <= most_window));
      const Time gap = fixture.sender.gap(4'160);
      REQUIRE(gap >= 0);
      if (gap > 0 && !std::is_same_v<TestType, Swift>) REQUIRE(gap <= serialization_ps(4'160, line / 1'000) + base_rtt);
      if (gap > 0) REQUIRE(gap >= mul_div(4'160, 8 * kSecond, line) / 3);
      changes += window != before || gap > 0;
      before = window;
      if (i % 100 > 0) continue;
      const auto words = fixture.visit_state();
      REQUIRE(twin.visit_state() == words);
      twin = {.with = fixture.with, .sender = {}, .now = drawn.any(0, kSecond), .links = {}};
      for (std::size_t link = 0; link < kHops; ++link)
        twin.links[link] = {twin.now - (fixture.now - fixture.links[link].at), fixture.links[link].waiting_bytes,
                            drawn.any(0, 1 << 30), 400'000'000'000};
      twin.sender.start(twin.with, path, twin.now);
      Reader reader{twin.now, twin.links, words};
      TestType::visit_state(twin.sender, reader);
      REQUIRE(reader.at_word == words.size());
    }
    if (!std::is_same_v<TestType, StaticWindow>) CHECK(changes > 100);  // the draws do move it
  }
}
