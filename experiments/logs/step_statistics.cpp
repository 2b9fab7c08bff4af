#include "experiments/logs/step_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"

namespace manyworlds::experiments::logs {
namespace {

constexpr double kNormalMad = 1.4826;  // of a normal distribution: standard deviation over median absolute deviation
constexpr double kFarDeviations = 5;

using Steps = std::vector<StepTime>;

double median_of(const std::vector<double>& values) {
  return quantile_of(values, 0.5);
}

std::vector<double> times_of(const Steps& steps) {
  std::vector<double> result;
  result.reserve(steps.size());
  for (const StepTime& one : steps) result.push_back(one.time_s);
  return result;
}

/// Returns where each start begins, and the end.
std::vector<std::size_t> bounds_of_starts(const Steps& steps) {
  std::vector<std::size_t> bounds;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (i == 0 || steps[i].start != steps[i - 1].start) bounds.push_back(i);
  bounds.push_back(steps.size());
  return bounds;
}

double settled_time(const Steps& steps, const std::vector<std::size_t>& bounds) {
  std::vector<double> settled;
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s)
    for (std::size_t i = bounds[s] + (bounds[s + 1] - bounds[s]) / 2; i < bounds[s + 1]; ++i)
      settled.push_back(steps[i].time_s);
  return median_of(settled);
}

/// Returns the records without those of warm-up.
Steps without_warm_up(const Steps& steps, std::optional<std::int64_t> skip) {
  const std::vector<std::size_t> bounds = bounds_of_starts(steps);
  const double settled_s = settled_time(steps, bounds);
  Steps result;
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    const std::size_t begin = bounds[s], end = bounds[s + 1];
    const std::size_t most = std::max<std::size_t>((end - begin) / 2, 1);
    std::size_t first = begin;
    if (skip)
      while (first < end && steps[first].iteration < steps[begin].iteration + *skip) ++first;
    else
      while (first < begin + most && steps[first].time_s > (1 + kWarmUp) * settled_s) ++first;
    result.insert(result.end(), steps.begin() + static_cast<std::ptrdiff_t>(first),
                  steps.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return result;
}

std::int64_t interval_of(const Steps& steps) {
  std::vector<double> differences;
  for (std::size_t i = 1; i < steps.size(); ++i)
    if (steps[i].start == steps[i - 1].start && steps[i].iteration > steps[i - 1].iteration)
      differences.push_back(static_cast<double>(steps[i].iteration - steps[i - 1].iteration));
  return differences.empty() ? 1 : static_cast<std::int64_t>(median_of(differences));
}

void count_outliers(StepStatistics& to, const std::vector<double>& times) {
  std::vector<double> deviations;
  for (const double time : times) deviations.push_back(std::abs(time - to.median_s));
  const double usual = kNormalMad * median_of(deviations);
  const double limit = to.median_s + std::max(kOutlier * to.median_s, kFarDeviations * usual);
  double beyond = 0;
  for (const double time : times) {
    if (time <= limit) continue;
    ++to.outliers;
    beyond += time - to.median_s;
  }
  to.outlier_share = beyond / std::accumulate(times.begin(), times.end(), 0.0);
}

}  // namespace

double quantile_of(std::vector<double> values, double share) {
  MANYWORLDS_CHECK(!values.empty(), "no values");
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

std::vector<StepTime> step_times(const TrainingLog& log, std::int64_t tokens, std::int64_t batch, std::int64_t gpus) {
  std::vector<StepTime> result;
  result.reserve(log.steps.size());
  for (const LoggedStep& one : log.steps) {
    double time_s = one.value;
    if (log.unit == StepUnit::tokens_per_s_per_gpu)
      time_s = static_cast<double>(tokens) / (one.value * static_cast<double>(gpus));
    if (log.unit == StepUnit::samples_per_s) time_s = static_cast<double>(batch) / one.value;
    result.push_back({one.iteration, time_s, one.start});
  }
  return result;
}

StepStatistics statistics_of(const std::vector<StepTime>& steps, std::optional<std::int64_t> skip) {
  MANYWORLDS_CHECK(!steps.empty(), "no steps");
  const Steps counted = without_warm_up(steps, skip);
  if (counted.empty())
    throw core::InputError(fmt::format("leaves no step of the log; it has iterations {} to {}", steps.front().iteration,
                                       steps.back().iteration),
                           fmt::format("--skip {}", skip.value_or(0)));
  StepStatistics result;
  result.records = counted.size();
  result.warm_up = steps.size() - counted.size();
  result.starts = bounds_of_starts(steps).size() - 1;
  result.interval = interval_of(steps);
  const std::vector<double> times = times_of(counted);
  result.median_s = median_of(times);
  result.low_s = quantile_of(times, 0.1);
  result.high_s = quantile_of(times, 0.9);
  result.mean_s = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  result.fastest_s = *std::min_element(times.begin(), times.end());
  count_outliers(result, times);
  if (times.size() >= kDriftRecords) {
    const auto third = static_cast<std::ptrdiff_t>(times.size() / 3);
    result.drift =
        median_of({times.end() - third, times.end()}) / median_of({times.begin(), times.begin() + third}) - 1;
  }
  return result;
}

}  // namespace manyworlds::experiments::logs
