// What a task of a sweep is to a person who wants to know why it failed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "farm/plan/sweep_job.hpp"

namespace manyworlds::farm {

/// `experiments`: the ids that need it (at most kDescribedExperiments of them, and `experiment_count`);
/// `configuration`: every setting of the first of them, from which the task is made.
nlohmann::json describe_task(const SweepJob& job, std::uint32_t task);

inline constexpr std::size_t kDescribedExperiments = 100;

}  // namespace manyworlds::farm
