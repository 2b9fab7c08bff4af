// A training log as the measurement of an experiment: refused if it is of another, and what it measured beside what is
// predicted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/analysis/own_interval.hpp"
#include "experiments/logs/step_statistics.hpp"
#include "experiments/sweep/experiment.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// One kind of peak memory, the largest of any rank, in bytes.
struct CheckedMemory {
  const char* name;  // "allocated" or "reserved"
  std::int64_t measured = 0, predicted = 0;
  double difference() const { return static_cast<double>(measured) / static_cast<double>(predicted) - 1; }
};

/// The steps of a log, as far as they are of the experiment.
struct MatchedLog {
  experiments::logs::StepStatistics steps;
  std::size_t other_batch = 0;     // records of another global batch, which ramps up; left out
  std::vector<std::string> notes;  // what the log says of itself and does not agree with the experiment for certain
};

/// Throws core::InputError if the log is of another experiment: other GPUs, batch or sequence length, as far as it says
/// them. With `skip`, warm-up is the first so many iterations.
MatchedLog match_log(const experiments::logs::TrainingLog& log, const experiments::Experiment& experiment,
                     std::optional<std::int64_t> skip);

/// Where a measured time lies.
enum class Place : std::uint8_t { below, inside, above };

struct CheckedInterval {
  double low_s = 0, high_s = 0;
  double share_below = 0;  // of the interval's distribution, at or below the measured time
  Place place(double measured_s) const {
    return measured_s < low_s ? Place::below : measured_s > high_s ? Place::above : Place::inside;
  }
};

struct CheckedRun {
  experiments::logs::TrainingLog log;  // without its steps
  MatchedLog matched;
  double predicted_s = 0;
  bool predicted_to_fit = true;                   // into memory
  experiments::Interval basis;                    // of the published interval
  std::optional<CheckedInterval> published, own;  // nothing for a lower bound, or without own measurements
  experiments::OwnEvidence evidence;
  std::vector<CheckedMemory> memory;
  std::vector<std::string> suggestions;

  double measured_s() const { return matched.steps.median_s; }
  double difference() const { return measured_s() / predicted_s - 1; }
  /// The narrower knowledge: the own interval if there is one.
  const std::optional<CheckedInterval>& interval() const { return own ? own : published; }
};

/// Returns the predicted peaks of the ranks beside those of the log, as far as it prints them.
std::vector<CheckedMemory> check_memory(const experiments::logs::TrainingLog& log,
                                        const experiments::Experiment& experiment);

/// Returns both intervals of a predicted time and where the measured one lies in them.
void check_interval(CheckedRun& run, const experiments::Experiment& experiment,
                    const experiments::Uncertainty& uncertainty, const std::vector<experiments::OwnStep>& own,
                    const std::string& own_id);

}  // namespace manyworlds::farm
