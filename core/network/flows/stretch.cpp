#include "core/network/flows/stretch.hpp"

#include <algorithm>
#include <utility>

namespace manyworlds::core::network {
namespace {

constexpr std::int64_t kHopsOfLook = 2'000, kHopsPerWord = 16;
constexpr std::uint32_t kLeastLeft = 240;  // of every flow, for a stretch that may be worth looks
constexpr std::int64_t kMostTimes = 4;     // a quarter of the past is passed over at once at most so often
constexpr std::size_t kMostWindows = 64;   // in the past; then two become one
constexpr std::int64_t kMillion = 1'000'000;

}  // namespace

Stretch::Stretch(Engine& engine, std::vector<std::uint32_t> flows, std::size_t words, Skipping skipping)
    : engine_(engine),
      flows_(std::move(flows)),
      hops_of_look_(kHopsOfLook + kHopsPerWord * static_cast<std::int64_t>(words)),
      periods_(skipping.periods),
      rate_(skipping.rate_tolerance_ppm > 0),
      tolerance_ppm_(skipping.rate_tolerance_ppm) {}

void Stretch::run(Time limit, std::vector<std::uint32_t>& completed) {
  if (begin())
    while (periods_ || rate_) {
      if (!reach_look(limit, completed)) return;
      look(limit);
    }
  simulate(limit, completed);
}

/// False if it is too short for looks.
bool Stretch::begin() {
  const Repeatable* const engine = engine_.repeatable();
  if (engine == nullptr || flows_.empty()) return false;
  watched_ = *std::min_element(flows_.begin(), flows_.end(),
                               [&](std::uint32_t a, std::uint32_t b) { return engine->left(a) < engine->left(b); });
  if (engine->left(watched_) < kLeastLeft) return false;
  passed_packets_.resize(flows_.size());
  marks_.push_back(progress());
  return true;
}

/// False if the stretch ended before the next look.
bool Stretch::reach_look(Time limit, std::vector<std::uint32_t>& completed) {
  for (;; interval_ *= 2) {
    const std::uint32_t left = engine_.repeatable()->left(watched_);
    const std::uint32_t at = left > interval_ ? left - interval_ : 0;
    if (at > 0) engine_.repeatable()->watch(watched_, at);
    simulate(limit, completed);
    if (at == 0 || !completed.empty() || engine_.repeatable()->left(watched_) != at) return false;
    if (engine_.counters().link_hops - hops_at_look_ >= hops_of_look_) return true;
    forget_reference();
  }
}

void Stretch::simulate(Time limit, std::vector<std::uint32_t>& completed) {
  engine_.run(limit == kNever ? kNever : limit - passed_, completed);
}

void Stretch::look(Time limit) {
  hops_at_look_ = engine_.counters().link_hops;
  if (periods_) look_for_period(limit);
  if (rate_ && ++window_looks_ >= looks_of_window_) end_window(limit);
}

void Stretch::look_for_period(Time limit) {
  Words words = engine_.repeatable()->recurring();
  if (words == reference_) {
    const Window period = between(reference_progress_, progress());
    if (const std::int64_t times = room_for(period, 1, limit); times > 0) {
      pass_over(period, times);
      hops_.periods += period.counters.link_hops * times;
    }
    periods_ = rate_ = false;  // less than two of them are left
  } else if (++looks_ == next_reference_) {
    next_reference_ *= 2;
    reference_ = std::move(words);
    reference_progress_ = progress();
  }
}

void Stretch::end_window(Time limit) {
  window_looks_ = 0;
  marks_.push_back(progress());
  const std::size_t windows = marks_.size() - 1;
  if (windows % 4 == 0) {
    const Progress& begin = marks_[windows / 2];
    const Progress& middle = marks_[windows - windows / 4];
    const Window earlier = between(begin, middle), later = between(middle, marks_.back());
    const std::int64_t steady = (steady_for(earlier, later) - passed_) / later.lasted;
    const std::int64_t times = std::min({kMostTimes, steady, room_for(later, 1, limit)});
    if (times > 0) pass_by_rate(later, times);
  }
  if (windows < kMostWindows) return;
  for (std::size_t i = 1; 2 * i < marks_.size(); ++i) marks_[i] = std::move(marks_[2 * i]);
  marks_.resize(kMostWindows / 2 + 1);
  looks_of_window_ *= 2;
}

std::int64_t Stretch::change_ppm(const Window& earlier, const Window& later, std::size_t flow) {
  const std::int64_t a = earlier.packets[flow], b = later.packets[flow];
  if (a == 0 || b == 0) return INT64_MAX;
  const Wide rate_a = static_cast<Wide>(a) * later.lasted, rate_b = static_cast<Wide>(b) * earlier.lasted;
  const auto [less, more] = std::minmax(rate_a, rate_b);
  const Wide relative = (more - less) * kMillion / less;
  return static_cast<std::int64_t>(std::min<Wide>(relative, kMillion)) + kMillion / std::min(a, b) + 1;
}

/// For how long no rate would leave the tolerance, if it goes on to change as it did from the middle of the earlier
/// window to that of the later.
Time Stretch::steady_for(const Window& earlier, const Window& later) const {
  Wide steady = kNever;
  for (std::size_t flow = 0; flow < flows_.size(); ++flow)
    steady = std::min(steady, static_cast<Wide>(tolerance_ppm_) * (earlier.lasted + later.lasted) / 2 /
                                  change_ppm(earlier, later, flow));
  return static_cast<Time>(steady);
}

void Stretch::pass_by_rate(Window window, std::int64_t times) {
  window.counters.link_hops = 0;  // those of the packets passed over, not those that came and went meanwhile
  for (std::size_t flow = 0; flow < flows_.size(); ++flow)
    window.counters.link_hops += std::int64_t{window.packets[flow]} * engine_.repeatable()->links(flows_[flow]);
  pass_over(window, times);
  hops_.rate += window.counters.link_hops * times;
  forget_reference();
}

void Stretch::forget_reference() {
  reference_.clear();
  looks_ = 0;
  next_reference_ = 1;
}

std::int64_t Stretch::room_for(const Window& window, std::int64_t reserve, Time limit) const {
  std::int64_t times = limit == kNever ? INT64_MAX : (limit - now()) / window.lasted;
  for (std::size_t flow = 0; flow < flows_.size(); ++flow)
    if (window.packets[flow] > 0)
      times = std::min<std::int64_t>(times, engine_.repeatable()->left(flows_[flow]) / window.packets[flow]);
  return times - reserve;
}

void Stretch::pass_over(const Window& window, std::int64_t times) {
  std::vector<std::uint32_t> packets(*std::max_element(flows_.begin(), flows_.end()) + std::size_t{1});
  for (std::size_t flow = 0; flow < flows_.size(); ++flow)
    passed_packets_[flow] += packets[flows_[flow]] = static_cast<std::uint32_t>(window.packets[flow] * times);
  engine_.repeatable()->pass_over(packets);
  passed_ += window.lasted * times;
  passed_counters_ += window.counters * times;
}

Stretch::Progress Stretch::progress() const {
  Progress made{engine_.now(), engine_.counters(), passed_packets_};
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) made.left[flow] += engine_.repeatable()->left(flows_[flow]);
  return made;
}

Stretch::Window Stretch::between(const Progress& begin, const Progress& end) {
  Window made{end.at - begin.at, end.counters - begin.counters, begin.left};
  for (std::size_t flow = 0; flow < made.packets.size(); ++flow) made.packets[flow] -= end.left[flow];
  return made;
}

}  // namespace manyworlds::core::network
