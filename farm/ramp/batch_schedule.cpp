#include "farm/ramp/batch_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"
#include "farm/ramp/envelope.hpp"

namespace manyworlds::farm::ramp {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-12;           // of times: what is gained by less is not gained
constexpr std::size_t kChoices = 20'000'000;  // moments times layouts: 80 MB, seconds

double time_between(const CriticalBatch& critical, const Candidate& one, double from, double to) {
  return one.step_s * (to - from + (critical.tokens(to) - critical.tokens(from)) / one.tokens);
}

/// The best schedule where layouts cost something to change.
class Layouts {
 public:
  Layouts(const CriticalBatch& critical, std::span<const Candidate> candidates, double end)
      : critical_(critical), candidates_(candidates), low_(critical.at(0)), high_(critical.at(end)), end_(end) {
    for (std::size_t begin = 0; begin < candidates.size();) {
      std::vector<std::size_t> members;
      for (const std::uint32_t layout = candidates[begin].layout;
           begin < candidates.size() && candidates[begin].layout == layout; ++begin)
        members.push_back(begin);
      envelopes_.push_back(lower_envelope(candidates, members, low_, high_));
    }
    drop_dominated();
  }

  std::vector<Leg> best(double restart_s, const std::string& name) {
    find_moments();
    if (moments_.size() * envelopes_.size() > kChoices)
      throw core::InputError(
          fmt::format("{} layouts may be changed at {} moments, too many to choose from; fewer experiments, as by "
                      "--where, or no --restart would do",
                      envelopes_.size(), moments_.size()),
          name);
    return legs_of(layouts_over_time(restart_s));
  }

 private:
  using Envelope = std::vector<EnvelopePiece>;
  struct Span {
    double steps, tokens;  // of an infinite and of a tiny batch
    double critical;       // inside it
  };

  static const EnvelopePiece& piece_at(const Envelope& envelope, double critical) {
    const auto after = std::upper_bound(envelope.begin() + 1, envelope.end(), critical,
                                        [](double value, const EnvelopePiece& piece) { return value < piece.from; });
    return *(after - 1);
  }
  double rate(const Envelope& envelope, double critical) const {
    return candidates_[piece_at(envelope, critical).candidate].rate(critical);
  }

  /// Whether `by` is nowhere slower than `other`: both are linear between the points where either changes its batch.
  bool dominates(const Envelope& by, const Envelope& other) const {
    const auto slower_at = [&](double critical) { return rate(by, critical) > rate(other, critical); };
    if (slower_at(high_)) return false;
    for (const Envelope* envelope : {&by, &other})
      for (const EnvelopePiece& piece : *envelope)
        if (slower_at(piece.from)) return false;
    return true;
  }

  /// Leaves out layouts that another one is everywhere as fast as, since that one can take their place in any schedule.
  void drop_dominated() {
    std::vector<Envelope> kept;
    for (Envelope& envelope : envelopes_) {
      if (std::any_of(kept.begin(), kept.end(), [&](const Envelope& by) { return dominates(by, envelope); })) continue;
      std::erase_if(kept, [&](const Envelope& other) { return dominates(envelope, other); });
      kept.push_back(std::move(envelope));
    }
    envelopes_ = std::move(kept);
  }

  /// Finds the moments at which layouts are equally fast, or one changes its batch, with the beginning and the end.
  void find_moments() {
    std::vector<double> crossings;
    for (std::size_t a = 0; a < envelopes_.size(); ++a) {
      for (const EnvelopePiece& piece : envelopes_[a]) crossings.push_back(piece.from);
      for (std::size_t b = 0; b < a; ++b) add_crossings(envelopes_[a], envelopes_[b], crossings);
    }
    moments_ = {0, end_};
    for (const double critical : crossings)
      if (critical > low_ && critical < high_) moments_.push_back(std::min(end_, critical_.steps_at(critical)));
    std::sort(moments_.begin(), moments_.end());
    moments_.erase(std::unique(moments_.begin(), moments_.end()), moments_.end());
    for (std::size_t i = 0; i + 1 < moments_.size(); ++i)
      spans_.push_back({moments_[i + 1] - moments_[i],
                        critical_.tokens(moments_[i + 1]) - critical_.tokens(moments_[i]),
                        critical_.at((moments_[i] + moments_[i + 1]) / 2)});
  }

  void add_crossings(const Envelope& a, const Envelope& b, std::vector<double>& crossings) const {
    for (const EnvelopePiece& one : a) {
      for (const EnvelopePiece& other : b) {
        const double from = std::max(one.from, other.from), to = std::min(one.to, other.to);
        const Candidate &first = candidates_[one.candidate], &second = candidates_[other.candidate];
        if (from >= to || first.step_s / first.tokens == second.step_s / second.tokens) continue;
        if (const double at = crossing(first, second); at >= from && at <= to) crossings.push_back(at);
      }
    }
  }

  std::size_t candidate_in(std::size_t span, std::size_t layout) const {
    return piece_at(envelopes_[layout], spans_[span].critical).candidate;
  }
  double time_in(std::size_t span, std::size_t layout) const {
    const Candidate& one = candidates_[candidate_in(span, layout)];
    return one.step_s * (spans_[span].steps + spans_[span].tokens / one.tokens);
  }

  /// Returns the layout between each two moments.
  std::vector<std::uint32_t> layouts_over_time(double restart_s) const {
    const std::size_t layouts = envelopes_.size(), spans = spans_.size();
    std::vector<double> time_s(layouts, 0);
    std::vector<std::uint32_t> before(spans * layouts);
    for (std::size_t span = 0; span < spans; ++span) {
      const auto first = static_cast<std::uint32_t>(std::min_element(time_s.begin(), time_s.end()) - time_s.begin());
      const double changed_s = time_s[first] + restart_s;
      for (std::uint32_t layout = 0; layout < layouts; ++layout) {
        const bool changes = span > 0 && changed_s * (1 + kRounding) < time_s[layout];
        before[span * layouts + layout] = changes ? first : layout;
        if (changes) time_s[layout] = changed_s;
        time_s[layout] += time_in(span, layout);
      }
    }
    std::vector<std::uint32_t> chosen(spans);
    auto layout = static_cast<std::uint32_t>(std::min_element(time_s.begin(), time_s.end()) - time_s.begin());
    for (std::size_t span = spans; span-- > 0; layout = before[span * layouts + layout]) chosen[span] = layout;
    return chosen;
  }

  std::vector<Leg> legs_of(const std::vector<std::uint32_t>& layouts) const {
    std::vector<Leg> legs;
    for (std::size_t span = 0; span < layouts.size(); ++span) {
      const std::size_t candidate = candidate_in(span, layouts[span]);
      if (legs.empty() || legs.back().candidate != candidate) legs.push_back({candidate, 0});
      legs.back().to = moments_[span + 1];
    }
    return legs;
  }

  const CriticalBatch& critical_;
  std::span<const Candidate> candidates_;
  double low_, high_;  // critical batches at the beginning and at the end
  double end_;
  std::vector<Envelope> envelopes_;  // of layouts
  std::vector<double> moments_;      // in steps of an infinite batch
  std::vector<Span> spans_;          // between each two of them
};

std::vector<std::size_t> all_of(std::span<const Candidate> candidates) {
  std::vector<std::size_t> members(candidates.size());
  std::iota(members.begin(), members.end(), std::size_t{0});
  return members;
}

/// Returns the fastest of `members` at every moment.
std::vector<Leg> fastest_legs(const CriticalBatch& critical, std::span<const Candidate> candidates,
                              std::vector<std::size_t> members, double end) {
  std::vector<Leg> legs;
  const auto pieces = lower_envelope(candidates, std::move(members), critical.at(0), critical.at(end));
  for (std::size_t i = 0; i < pieces.size(); ++i)
    legs.push_back({pieces[i].candidate, i + 1 < pieces.size() ? std::min(end, critical.steps_at(pieces[i].to)) : end});
  return legs;
}

}  // namespace

double BatchSchedule::steps() const {
  return std::accumulate(phases.begin(), phases.end(), 0.0,
                         [](double sum, const Phase& phase) { return sum + phase.steps; });
}

BatchSchedule follow(const CriticalBatch& critical, std::span<const Candidate> candidates, std::span<const Leg> legs,
                     double restart_s) {
  BatchSchedule schedule;
  double from = 0;
  for (const Leg& leg : legs) {
    if (leg.to <= from) continue;
    const Candidate& one = candidates[leg.candidate];
    Phase phase{leg.candidate, schedule.tokens(), 0, critical.at(from), 0, 0};
    phase.steps = leg.to - from + (critical.tokens(leg.to) - critical.tokens(from)) / one.tokens;
    phase.time_s = phase.steps * one.step_s;
    phase.to_tokens = phase.from_tokens + phase.steps * one.tokens;
    if (!schedule.phases.empty() && candidates[schedule.phases.back().candidate].layout != one.layout)
      ++schedule.restarts, schedule.time_s += restart_s;
    schedule.time_s += phase.time_s;
    schedule.phases.push_back(phase);
    from = leg.to;
  }
  return schedule;
}

double least_time_s(const CriticalBatch& critical, std::span<const Candidate> candidates,
                    const std::vector<std::size_t>& members, double end) {
  return follow(critical, candidates, fastest_legs(critical, candidates, members, end), 0).time_s;
}

BatchSchedule best_schedule(const CriticalBatch& critical, std::span<const Candidate> candidates, double end,
                            double restart_s, const std::string& name) {
  const std::vector<Leg> legs = restart_s > 0 ? Layouts(critical, candidates, end).best(restart_s, name)
                                              : fastest_legs(critical, candidates, all_of(candidates), end);
  return follow(critical, candidates, legs, restart_s);
}

Leg best_fixed(const CriticalBatch& critical, std::span<const Candidate> candidates, double end, std::int64_t batch) {
  Leg best{0, end};
  double least_s = kInfinity;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (batch != 0 && candidates[i].batch != batch) continue;
    const double time_s = time_between(critical, candidates[i], 0, end);
    if (time_s < least_s) least_s = time_s, best.candidate = i;
  }
  MANYWORLDS_CHECK(least_s < kInfinity, "no candidate has batch {}", batch);
  return best;
}

}  // namespace manyworlds::farm::ramp
