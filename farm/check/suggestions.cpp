#include "farm/check/suggestions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.hpp"
#include "core/workload/program/step_parts.hpp"
#include "experiments/validity/validity.hpp"
#include "farm/texts/stage_footprints.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using core::workload::Activity;

constexpr double kVaries = 0.1;  // of the median, between the tenths of records
constexpr double kDrifts = 0.02;
constexpr double kMemoryFits = 0.05, kMemoryDiffers = 0.1;
constexpr double kRecognised = 0.03;  // another layout's memory explains the measured one within this
constexpr double kSameRate = 0.03;    // two rates are taken for one within this

std::string time_text(double seconds) {
  return io::with_si_prefix(std::abs(seconds), "s");
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

class Suggestions {
 public:
  Suggestions(const CheckedRun& run, const ResultRow& row, const experiments::Experiment& experiment)
      : run_(run), row_(row), experiment_(experiment), config_(experiment.config()) {}

  std::vector<std::string> all() {
    steadiness();
    if (std::abs(run_.difference()) > kNoDifference) {
      same_layout();
      if (run_.difference() > 0)
        slower();
      else
        faster();
    }
    memory();
    return std::move(texts_);
  }

 private:
  template <class... Values>
  void suggest(fmt::format_string<Values...> format, Values&&... values) {
    texts_.push_back(fmt::format(format, std::forward<Values>(values)...));
  }

  /// Returns the predicted time of parts, mean over ranks.
  template <class Predicate>
  double seconds_of(const Predicate& counts) const {
    double sum = 0;
    for (const core::workload::StepPartInfo& part : core::workload::kStepParts)
      if (counts(part)) sum += row_.number(std::string(part.column));
    return sum;
  }

  double gap_s() const { return std::abs(run_.measured_s() - run_.predicted_s); }
  bool memory_fits() const {
    return !run_.memory.empty() && std::all_of(run_.memory.begin(), run_.memory.end(), [](const CheckedMemory& one) {
      return std::abs(one.difference()) <= kMemoryFits;
    });
  }

  void steadiness();
  void same_layout();
  void slower();
  void faster();
  void clocks(double factor);
  void memory();
  void other_memory(const CheckedMemory& one);

  const CheckedRun& run_;
  const ResultRow& row_;
  const experiments::Experiment& experiment_;
  experiments::ExperimentConfig config_;
  std::vector<std::string> texts_;
};

void Suggestions::steadiness() {
  const auto& steps = run_.matched.steps;
  const double spread = (steps.high_s - steps.low_s) / steps.median_s;
  if (spread > kVaries)
    suggest(
        "steps vary by {} between their tenths, which no simulated step does: stragglers, data loading, or others on "
        "the "
        "network; the fastest takes {}, {:+.1f} % of the prediction",
        percent(spread), time_text(steps.fastest_s), 100 * (steps.fastest_s / run_.predicted_s - 1));
  if (steps.outliers > 0)
    suggest(
        "{} of {} records are far above the median and take {} of all time: checkpoints, evaluation or garbage "
        "collection would look like that",
        steps.outliers, steps.records, percent(steps.outlier_share));
  if (steps.drift && std::abs(*steps.drift) > kDrifts)
    suggest(
        "the last third is {} {} than the first: clocks that fall as a machine warms up, or memory that fragments, "
        "would look like that",
        percent(std::abs(*steps.drift)), *steps.drift > 0 ? "slower" : "faster");
}

void Suggestions::same_layout() {
  if (memory_fits())
    suggest(
        "peaks of memory are as predicted (within {}), so the run has the layout that was simulated: look for speed, "
        "not for settings",
        percent(kMemoryFits));
}

void Suggestions::slower() {
  const auto& strategy = config_.configuration.strategy;
  const std::int64_t passes = strategy.global_batch / std::max<std::int64_t>(strategy.micro_batch * strategy.dp, 1);
  const double exposed = seconds_of([](const auto& part) { return part.activity == Activity::communication; });
  const double kernels = seconds_of([](const auto& part) { return part.activity == Activity::kernels; });
  const double host = row_.number("host_s");
  if (exposed > 0)
    suggest(
        "the difference is {:.1f} times the exposed communication ({}, {} of the predicted step): were it the network "
        "alone, the step would wait {:.1f} times as long for it",
        gap_s() / exposed, time_text(exposed), percent(exposed / run_.predicted_s), 1 + gap_s() / exposed);
  else
    suggest(
        "no communication is exposed in the prediction: a slow network would show only where it overlaps no longer");
  if (kernels > 0) {
    suggest("kernels ({} of the predicted step) would have to be {:.2f} times slower, if it were them alone",
            percent(kernels / run_.predicted_s), (kernels + gap_s()) / kernels);
    clocks(kernels / (kernels + gap_s()));
  }
  suggest(
      "it is {} for each micro-batch of a rank (it has {}): launches from a slow host, or data loading, would grow "
      "like "
      "that; the prediction waits {} of a step for the host",
      time_text(gap_s() / static_cast<double>(std::max<std::int64_t>(passes, 1))), passes,
      percent(host / run_.predicted_s));
}

void Suggestions::faster() {
  const double exposed = seconds_of([](const auto& part) { return part.activity == Activity::communication; });
  const double bubble = row_.number("bubble_s"), host = row_.number("host_s");
  const double kernels = seconds_of([](const auto& part) { return part.activity == Activity::kernels; });
  const auto overlap = [&](const char* what, double seconds) {
    if (seconds >= gap_s())
      suggest("the difference is {} of what is predicted for {} ({}): the run may have less of it",
              percent(gap_s() / seconds), what, time_text(seconds));
  };
  overlap("exposed communication", exposed);
  overlap("the bubble", bubble);
  overlap("waiting for the host", host);
  if (kernels > gap_s()) {
    suggest("kernels ({} of the predicted step) would have to be {:.2f} times faster, if it were them alone",
            percent(kernels / run_.predicted_s), kernels / (kernels - gap_s()));
    clocks(kernels / (kernels - gap_s()));
  }
}

/// Compares a rate of kernels with what the power limit leaves of their rate in short bursts.
void Suggestions::clocks(double rate) {
  const double sustained = config_.configuration.gpu.sustained_rate;
  if (!(sustained > 0) || sustained >= 1) return;
  if (rate > 1 && std::abs(rate * sustained - 1) <= kSameRate)
    suggest(
        "that is the rate of short bursts: {:.3f} is predicted to be left of it under the power limit, which this run "
        "may not reach",
        sustained);
  if (rate < 1 && std::abs(rate / sustained - 1) <= kSameRate)
    suggest(
        "that is once more the factor {:.3f} that the power limit is predicted to take: a lower limit or hotter "
        "machines would do that",
        sustained);
}

/// Names what would explain the memory, if one change of sharding or recomputation does.
void Suggestions::other_memory(const CheckedMemory& one) {
  const bool reserved = std::string_view(one.name) == "reserved";
  const auto try_with = [&](const char* key, const core::OptionValue& value, const std::string& name) {
    experiments::Experiment other = experiment_;
    if (other.settings.at(key) == value) return;
    other.settings[key] = value;
    experiments::GraphCache graphs;
    if (experiments::find_violation(other.config(), graphs)) return;
    std::int64_t bytes = 0;
    for (const core::memory::Footprint& stage : stage_footprints(other.config().configuration))
      bytes = std::max(bytes, reserved ? stage.reserved() : stage.allocated());
    const double off = static_cast<double>(one.measured) / static_cast<double>(bytes) - 1;
    if (std::abs(off) <= kRecognised)
      suggest("with {} it would be {} ({:+.1f} %): check whether the run has that", name,
              gib_text(static_cast<double>(bytes)), 100 * off);
  };
  for (const char* recompute : {"none", "selective", "per_op", "full"})
    try_with("strategy.recompute", std::string(recompute), fmt::format("recompute {}", recompute));
  for (std::int64_t zero = 0; zero <= 3; ++zero) try_with("strategy.zero", zero, fmt::format("ZeRO stage {}", zero));
}

void Suggestions::memory() {
  for (const CheckedMemory& one : run_.memory) {
    if (std::abs(one.difference()) <= kMemoryDiffers) continue;
    suggest(
        "memory {} is {} {} than predicted ({:+.1f} %): recomputation, sharding of the optimizer, or the allocator's "
        "fragmentation may differ from the experiment",
        one.name, gib_text(std::abs(static_cast<double>(one.measured - one.predicted))),
        one.measured > one.predicted ? "more" : "less", 100 * one.difference());
    other_memory(one);
  }
}

}  // namespace

std::vector<std::string> suggestions_of(const CheckedRun& run, const ResultRow& row,
                                        const experiments::Experiment& experiment) {
  return Suggestions(run, row, experiment).all();
}

double usual_memory_error(const std::string& kind) {
  if (kind == "experts") return 0.038;
  return kind == "sharded" ? 0.065 : 0.031;
}

}  // namespace manyworlds::farm
