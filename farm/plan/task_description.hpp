// The description of a task of a sweep for a person who wants to know why it failed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "farm/plan/sweep_job.hpp"

namespace manyworlds::farm {

/// Returns `experiments`, the ids that need the task (at most kDescribedExperiments of them, with `experiment_count` in
/// all), and `configuration`, every setting of the first of them.
nlohmann::json describe_task(const SweepJob& job, std::uint32_t task);

inline constexpr std::size_t kDescribedExperiments = 100;

}  // namespace manyworlds::farm
