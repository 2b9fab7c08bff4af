// A training job that shares the GPUs of a cluster with others: what it has left to do, and how fast it is on how many
// GPUs. Work is counted in integers, so that schedules are exact: a job of speed v does v * t of it in a time t.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::farm::allocation {

using Nanoseconds = std::int64_t;
inline constexpr Nanoseconds kSecond_ns = 1'000'000'000;

/// Units of SpeedPoint::speed in a step per second, and of work in a step.
inline constexpr std::int64_t kSpeedUnits = 1'000'000'000'000;
inline constexpr core::Int128 kWorkUnits = static_cast<core::Int128>(kSpeedUnits) * kSecond_ns;

inline constexpr std::int64_t kGpusLimit = 1'000'000;

struct SpeedPoint {
  std::int64_t gpus = 0;   // from 1 to kGpusLimit
  std::int64_t speed = 0;  // in 1e-12 steps per second, from 1 to 1e18
};

struct Job {
  std::string name;
  std::int64_t steps = 0;         // remaining, from 1 to 1e12
  Nanoseconds arrival = 0;        // from 0
  std::vector<SpeedPoint> curve;  // the numbers of GPUs that it can use, ascending; not empty
  std::int64_t request = 0;       // the GPUs that it asks of a queue, one of the curve's; 0: where it is fastest

  core::Int128 work() const { return steps * kWorkUnits; }
};

/// Returns the point of the curve on at most `gpus` GPUs where the job is fastest, of equal speeds the one with fewer
/// GPUs. At least the first point must have so few.
inline const SpeedPoint& fastest_point(const Job& job, std::int64_t gpus) {
  const SpeedPoint* best = &job.curve.front();
  for (const SpeedPoint& point : job.curve)
    if (point.gpus <= gpus && point.speed > best->speed) best = &point;
  return *best;
}

/// Returns the speed on `gpus` GPUs, which must be one of the curve's; 0 on none.
inline std::int64_t speed_on(const Job& job, std::int64_t gpus) {
  const auto found = std::find_if(job.curve.begin(), job.curve.end(), [&](const auto& at) { return at.gpus == gpus; });
  return found == job.curve.end() ? 0 : found->speed;
}

}  // namespace manyworlds::farm::allocation
