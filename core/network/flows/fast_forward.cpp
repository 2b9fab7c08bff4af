// Detection of periods and steady rates, and skipping.
#include "core/network/flows/fast_forward.hpp"

#include <algorithm>
#include <utility>

namespace manyworlds::core::network {
namespace {

constexpr std::int64_t kHopsPerCheck = 2'000, kHopsPerWord = 16;
constexpr std::uint32_t kMinPacketsLeft = 240;  // packets that every flow must have left for checks to be worthwhile
constexpr std::int64_t kMaxRepeats = 4;         // maximum number of times the last quarter is repeated at once
constexpr std::size_t kMaxWindows = 64;         // maximum number of windows; beyond it pairs are merged
constexpr std::int64_t kMillion = 1'000'000;

}  // namespace

FastForwarder::FastForwarder(Engine& engine, std::vector<std::uint32_t> flows, std::size_t words,
                             FastForwardOptions options)
    : engine_(engine),
      flows_(std::move(flows)),
      hops_per_check_(kHopsPerCheck + kHopsPerWord * static_cast<std::int64_t>(words)),
      try_periods_(options.periods),
      try_rate_(options.rate_tolerance_ppm > 0),
      tolerance_ppm_(options.rate_tolerance_ppm) {}

void FastForwarder::run(Time limit, std::vector<std::uint32_t>& completed) {
  if (begin())
    while (try_periods_ || try_rate_) {
      if (!run_to_check(limit, completed)) return;
      check(limit);
    }
  simulate(limit, completed);
}

/// Prepares the checks. Returns false if the remaining simulation is too short for them.
bool FastForwarder::begin() {
  if (flows_.empty()) return false;
  pacing_flow_ = *std::min_element(flows_.begin(), flows_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return engine_.remaining(a) < engine_.remaining(b);
  });
  if (engine_.remaining(pacing_flow_) < kMinPacketsLeft) return false;
  skipped_packets_.resize(flows_.size());
  window_marks_.push_back(progress());
  return true;
}

/// Simulates to the next check. Returns false if the simulation ended before it.
bool FastForwarder::run_to_check(Time limit, std::vector<std::uint32_t>& completed) {
  for (;; interval_ *= 2) {
    const std::uint32_t remaining = engine_.remaining(pacing_flow_);
    const std::uint32_t at = remaining > interval_ ? remaining - interval_ : 0;
    if (at > 0) engine_.watch(pacing_flow_, at);
    simulate(limit, completed);
    if (at == 0 || !completed.empty() || engine_.remaining(pacing_flow_) != at) return false;
    if (engine_.counters().link_hops - hops_at_check_ >= hops_per_check_) return true;
    clear_reference();
  }
}

void FastForwarder::simulate(Time limit, std::vector<std::uint32_t>& completed) {
  engine_.run(limit == kNever ? kNever : limit - skipped_time_, completed);
}

void FastForwarder::check(Time limit) {
  hops_at_check_ = engine_.counters().link_hops;
  if (try_periods_) check_period(limit);
  if (try_rate_ && ++window_checks_ >= checks_per_window_) end_window(limit);
}

void FastForwarder::check_period(Time limit) {
  StateWords words = engine_.periodic_state();
  if (words == reference_) {
    const Window period = between(reference_progress_, progress());
    if (const std::int64_t repeats = max_repeats(period, 1, limit); repeats > 0) {
      skip(period, repeats);
      skipped_hops_.periods += period.counters.link_hops * repeats;
    }
    try_periods_ = try_rate_ = false;  // fewer than two periods are left
  } else if (++period_checks_ == next_reference_) {
    next_reference_ *= 2;
    reference_ = std::move(words);
    reference_progress_ = progress();
  }
}

void FastForwarder::end_window(Time limit) {
  window_checks_ = 0;
  window_marks_.push_back(progress());
  const std::size_t windows = window_marks_.size() - 1;
  if (windows % 4 == 0) {
    const Progress& begin = window_marks_[windows / 2];
    const Progress& middle = window_marks_[windows - windows / 4];
    const Window earlier = between(begin, middle), later = between(middle, window_marks_.back());
    const std::int64_t steady = (steady_time(earlier, later) - skipped_time_) / later.duration;
    const std::int64_t repeats = std::min({kMaxRepeats, steady, max_repeats(later, 1, limit)});
    if (repeats > 0) skip_by_rate(later, repeats);
  }
  if (windows < kMaxWindows) return;
  for (std::size_t i = 1; 2 * i < window_marks_.size(); ++i) window_marks_[i] = std::move(window_marks_[2 * i]);
  window_marks_.resize(kMaxWindows / 2 + 1);
  checks_per_window_ *= 2;
}

std::int64_t FastForwarder::change_ppm(const Window& earlier, const Window& later, std::size_t flow) {
  const std::int64_t a = earlier.packets[flow], b = later.packets[flow];
  if (a == 0 || b == 0) return INT64_MAX;
  const Int128 rate_a = static_cast<Int128>(a) * later.duration, rate_b = static_cast<Int128>(b) * earlier.duration;
  const auto [less, more] = std::minmax(rate_a, rate_b);
  const Int128 relative = (more - less) * kMillion / less;
  return static_cast<std::int64_t>(std::min<Int128>(relative, kMillion)) + kMillion / std::min(a, b) + 1;
}

/// Returns the time for which all rates stay within the tolerance if they continue to change as they did from the
/// middle of the earlier window to the middle of the later one.
Time FastForwarder::steady_time(const Window& earlier, const Window& later) const {
  Int128 steady = kNever;
  for (std::size_t flow = 0; flow < flows_.size(); ++flow)
    steady = std::min(steady, static_cast<Int128>(tolerance_ppm_) * (earlier.duration + later.duration) / 2 /
                                  change_ppm(earlier, later, flow));
  return static_cast<Time>(steady);
}

void FastForwarder::skip_by_rate(Window window, std::int64_t repeats) {
  window.counters.link_hops = 0;  // counts the link-hops of the skipped packets instead of those in the window
  for (std::size_t flow = 0; flow < flows_.size(); ++flow)
    window.counters.link_hops += std::int64_t{window.packets[flow]} * engine_.links(flows_[flow]);
  skip(window, repeats);
  skipped_hops_.rate += window.counters.link_hops * repeats;
  clear_reference();
}

void FastForwarder::clear_reference() {
  reference_.clear();
  period_checks_ = 0;
  next_reference_ = 1;
}

std::int64_t FastForwarder::max_repeats(const Window& window, std::int64_t reserve, Time limit) const {
  std::int64_t repeats = limit == kNever ? INT64_MAX : (limit - now()) / window.duration;
  for (std::size_t flow = 0; flow < flows_.size(); ++flow)
    if (window.packets[flow] > 0)
      repeats = std::min<std::int64_t>(repeats, engine_.remaining(flows_[flow]) / window.packets[flow]);
  return repeats - reserve;
}

void FastForwarder::skip(const Window& window, std::int64_t repeats) {
  std::vector<std::uint32_t> packets(*std::max_element(flows_.begin(), flows_.end()) + std::size_t{1});
  for (std::size_t flow = 0; flow < flows_.size(); ++flow)
    skipped_packets_[flow] += packets[flows_[flow]] = static_cast<std::uint32_t>(window.packets[flow] * repeats);
  engine_.skip(packets);
  skipped_time_ += window.duration * repeats;
  skipped_counters_ += window.counters * repeats;
}

FastForwarder::Progress FastForwarder::progress() const {
  Progress result{engine_.now(), engine_.counters(), skipped_packets_};
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) result.remaining[flow] += engine_.remaining(flows_[flow]);
  return result;
}

FastForwarder::Window FastForwarder::between(const Progress& begin, const Progress& end) {
  Window result{end.at - begin.at, end.counters - begin.counters, begin.remaining};
  for (std::size_t flow = 0; flow < result.packets.size(); ++flow) result.packets[flow] -= end.remaining[flow];
  return result;
}

}  // namespace manyworlds::core::network
