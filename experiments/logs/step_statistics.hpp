// What the steps of a log say of the time of a step: without warm-up, robust against what happens now and then.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experiments/logs/training_log.hpp"

namespace manyworlds::experiments::logs {

/// A step's time, or the mean over several if the log prints only every so many.
struct StepTime {
  std::int64_t iteration = 0;
  double time_s = 0;
  int start = 0;
};

/// Returns the times of a log's steps, of `tokens` tokens and `batch` samples each on `gpus` GPUs, which rates need.
std::vector<StepTime> step_times(const TrainingLog& log, std::int64_t tokens, std::int64_t batch, std::int64_t gpus);

struct StepStatistics {
  std::size_t records = 0;  // that count
  std::size_t warm_up = 0;  // records that are left out
  std::size_t starts = 1;
  std::int64_t interval = 1;                               // iterations from one record to the next, the median
  double median_s = 0, low_s = 0, high_s = 0, mean_s = 0;  // low and high: a tenth of the records is below, or above
  double fastest_s = 0;
  std::size_t outliers = 0;     // records far above the median
  double outlier_share = 0;     // what they take beyond the median, as a share of all time
  std::optional<double> drift;  // of the last third against the first, as a share; nothing if records are few
};

/// A record is warm-up if it and all before it in its start are more than kWarmUp above the median of the second half
/// of the records of all starts, but at most half of a start, or its only record. With `skip`, it is instead if it is
/// among the first `skip` iterations of its start.
inline constexpr double kWarmUp = 0.1;
/// An outlier is more than kOutlier above the median, and more than five times as far as records usually are.
inline constexpr double kOutlier = 0.1;
/// The fewest records of which a drift is told.
inline constexpr std::size_t kDriftRecords = 9;

/// Throws core::InputError if `skip` leaves no record.
StepStatistics statistics_of(const std::vector<StepTime>& steps, std::optional<std::int64_t> skip = std::nullopt);

/// Returns the value below which a share of the values is, interpolated between neighbours; `values` must not be empty.
double quantile_of(std::vector<double> values, double share);

}  // namespace manyworlds::experiments::logs
