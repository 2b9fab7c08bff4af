#include "farm/ramp/megatron_ramp.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace manyworlds::farm::ramp {
namespace {

constexpr int kValues = 200, kSections = 80;
constexpr double kGain = 1e-6;    // over fixed batches: a ramp that gains less is none
constexpr double kFewest = 1e-9;  // samples that are tried, as a share of those that START alone would need

/// The batches of a ramp as candidates, from START to LAST.
using Batches = std::vector<std::size_t>;

class RampSearch {
 public:
  RampSearch(const CriticalBatch& critical, std::span<const Candidate> candidates, double tokens_per_sample, double end)
      : critical_(critical), candidates_(candidates), tokens_per_sample_(tokens_per_sample), end_(end) {
    const Leg fixed = best_fixed(critical, candidates, end);
    fixed_s_ = (1 - kGain) * follow(critical, candidates, std::span(&fixed, 1), 0).time_s;
  }

  /// Tries all ramps of one layout, whose candidates these are, by batch.
  void try_layout(const std::map<std::int64_t, std::size_t>& by_batch) {
    Batches all;
    for (const auto& [batch, candidate] : by_batch) all.push_back(candidate);
    if (all.size() < 2 || !may_be_best(all)) return;
    for (auto start = by_batch.begin(); start != by_batch.end(); ++start)
      for (auto second = std::next(start); second != by_batch.end(); ++second) {
        const std::int64_t increment = second->first - start->first;
        Batches batches{start->second};
        for (auto next = second; next != by_batch.end(); next = by_batch.find(next->first + increment)) {
          batches.push_back(next->second);
          if (may_be_best(batches)) try_batches(batches);
        }
      }
  }

  std::optional<MegatronRamp> best() && { return std::move(best_); }

 private:
  double best_s() const { return best_ ? best_->schedule.time_s : fixed_s_; }
  bool may_be_best(const Batches& batches) const {
    return least_time_s(critical_, candidates_, batches, end_) < best_s();
  }

  BatchSchedule schedule_of(const Batches& batches, double samples) const {
    const double tokens = samples * tokens_per_sample_ / static_cast<double>(batches.size() - 1);  // of each batch
    std::vector<Leg> legs;
    double from = 0;
    for (std::size_t i = 0; i + 1 < batches.size() && from < end_; ++i) {
      from = std::min(end_, critical_.steps_after(from, candidates_[batches[i]].tokens, tokens));
      legs.push_back({batches[i], from});
    }
    legs.push_back({batches.back(), end_});
    return follow(critical_, candidates_, legs, 0);
  }

  /// Returns the logarithm of the best number of samples.
  double best_ln_samples(const Batches& batches) const {
    const double most = (critical_.tokens(end_) + candidates_[batches.front()].tokens * end_) / tokens_per_sample_ *
                        static_cast<double>(batches.size() - 1);
    const double high = std::log(most), step = -std::log(kFewest) / (kValues - 1);
    const auto time_s = [&](double ln_samples) { return schedule_of(batches, std::exp(ln_samples)).time_s; };
    double best = high, least_s = time_s(high);
    for (int i = 1; i < kValues; ++i)
      if (const double at = high - i * step, at_s = time_s(at); at_s < least_s) best = at, least_s = at_s;
    return golden_section(best - step, std::min(high, best + step), time_s);
  }

  template <class Time>
  static double golden_section(double low, double high, Time&& time_s) {
    const double ratio = (std::sqrt(5.0) - 1) / 2;
    double first = high - ratio * (high - low), second = low + ratio * (high - low);
    double first_s = time_s(first), second_s = time_s(second);
    for (int i = 0; i < kSections; ++i) {
      if (first_s <= second_s) {
        high = second, second = first, second_s = first_s;
        first = high - ratio * (high - low), first_s = time_s(first);
      } else {
        low = first, first = second, first_s = second_s;
        second = low + ratio * (high - low), second_s = time_s(second);
      }
    }
    return (low + high) / 2;
  }

  void try_batches(const Batches& batches) {
    MegatronRamp ramp{candidates_[batches[0]].batch,
                      candidates_[batches[1]].batch - candidates_[batches[0]].batch,
                      std::max<std::int64_t>(1, std::llround(std::exp(best_ln_samples(batches)))),
                      candidates_[batches.back()].batch,
                      {}};
    ramp.schedule = schedule_of(batches, static_cast<double>(ramp.samples));
    if (ramp.schedule.time_s < best_s()) best_ = std::move(ramp);
  }

  const CriticalBatch& critical_;
  std::span<const Candidate> candidates_;
  double tokens_per_sample_, end_;
  double fixed_s_;  // what a ramp has to be faster than
  std::optional<MegatronRamp> best_;
};

}  // namespace

std::optional<MegatronRamp> best_megatron_ramp(const CriticalBatch& critical, std::span<const Candidate> candidates,
                                               double tokens_per_sample, double end) {
  std::vector<std::map<std::int64_t, std::size_t>> layouts;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].layout >= layouts.size()) layouts.resize(candidates[i].layout + 1);
    layouts[candidates[i].layout].emplace(candidates[i].batch, i);
  }
  // The most promising first, so that others are left out.
  const auto least_s = [&](const auto& layout) {
    std::vector<std::size_t> members;
    for (const auto& [batch, candidate] : layout) members.push_back(candidate);
    return members.empty() ? 0 : least_time_s(critical, candidates, members, end);
  };
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < layouts.size(); ++i) order.emplace_back(least_s(layouts[i]), i);
  std::sort(order.begin(), order.end());
  RampSearch search(critical, candidates, tokens_per_sample, end);
  for (const auto& [time_s, layout] : order) search.try_layout(layouts[layout]);
  return std::move(search).best();
}

}  // namespace manyworlds::farm::ramp
