// The time of a step from many: warm-up, tenths, outliers and drift of values whose statistics are known.
#include "experiments/logs/step_statistics.hpp"

#include <catch2/catch.hpp>

#include "core/base/error.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments::logs;

namespace {

/// Steps from iteration `first` on, every `interval`, of one start.
std::vector<StepTime> steps_of(const std::vector<double>& times, std::int64_t first = 1, std::int64_t interval = 1,
                               int start = 0) {
  std::vector<StepTime> steps;
  for (std::size_t i = 0; i < times.size(); ++i)
    steps.push_back({first + static_cast<std::int64_t>(i) * interval, times[i], start});
  return steps;
}

}  // namespace

TEST_CASE("quantiles lie between neighbours") {
  CHECK(quantile_of({4, 1, 3, 2, 5}, 0.5) == 3);
  CHECK(quantile_of({1, 2}, 0.5) == 1.5);
  CHECK(quantile_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0.1) == 2);
  CHECK(quantile_of({7}, 0.9) == 7);
}

TEST_CASE("the slow steps at the begin of a start are warm-up, until one comes near to the settled time") {
  const auto one = statistics_of(steps_of({9, 3, 2.1, 3, 2, 2, 2, 2}));
  CHECK((one.warm_up == 2 && one.records == 6));
  CHECK(one.median_s == 2);
  CHECK(one.interval == 1);
  auto twice = steps_of({9, 2, 2, 2}, 10, 10);
  const auto again = steps_of({8, 2, 2, 2}, 10, 10, 1);
  twice.insert(twice.end(), again.begin(), again.end());
  const auto both = statistics_of(twice);
  CHECK((both.warm_up == 2 && both.records == 6 && both.starts == 2 && both.interval == 10));
  CHECK((both.low_s == 2 && both.high_s == 2));
}

TEST_CASE("at most half of a start is warm-up, a single step is none, and --skip decides instead") {
  CHECK(statistics_of(steps_of({9, 8, 7, 6, 2, 2})).warm_up == 3);
  CHECK(statistics_of(steps_of({12.39})).records == 1);
  const auto skipped = statistics_of(steps_of({2, 2, 2, 4, 4}, 10, 10), 30);
  CHECK((skipped.warm_up == 3 && skipped.median_s == 4));
  CHECK(statistics_of(steps_of({9, 2, 2}), 0).records == 3);
  CHECK_THROWS_WITH(statistics_of(steps_of({2, 2}), 100), Catch::Contains("leaves no step"));
}

TEST_CASE("outliers are counted with what they take beyond the median") {
  std::vector<double> times(18, 1.0);
  times.insert(times.end(), {3.0, 5.0});
  const auto found = statistics_of(steps_of(times));
  CHECK(found.outliers == 2);
  CHECK(found.outlier_share == Approx((2.0 + 4.0) / 26));
  CHECK(found.median_s == 1);
  CHECK(found.mean_s == Approx(1.3));
  // Steps that vary as much as this have none.
  CHECK(statistics_of(steps_of({1, 1.2, 0.8, 1.1, 0.9, 1.3, 0.7, 1, 1.2, 0.8})).outliers == 0);
}

TEST_CASE("drift is that of the last third against the first") {
  const auto rising = statistics_of(steps_of({1, 1, 1, 1.05, 1.05, 1.05, 1.1, 1.1, 1.1}));
  REQUIRE(rising.drift);
  CHECK(*rising.drift == Approx(0.1));
  CHECK_FALSE(statistics_of(steps_of({1, 1, 1, 1, 1, 1, 1, 1})).drift);
}

TEST_CASE("rates become times with the step's tokens and samples") {
  TrainingLog log;
  log.steps = {{10, 7000, 0, 1, 0}};
  log.unit = StepUnit::tokens_per_s_per_gpu;
  CHECK(step_times(log, 8 * 8192, 8, 8).at(0).time_s == Approx(8192.0 / 7000));
  log.unit = StepUnit::samples_per_s;
  CHECK(step_times(log, 8 * 8192, 14000, 8).at(0).time_s == Approx(2));
  log.unit = StepUnit::seconds;
  CHECK(step_times(log, 1, 1, 1).at(0).time_s == 7000);
}
