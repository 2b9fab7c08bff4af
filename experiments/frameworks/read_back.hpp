// What an emitted job is when it is read again.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/job.hpp"
#include "experiments/keys/settings_map.hpp"

namespace manyworlds::experiments::jobs {

/// Returns the settings of a job on the machines of `experiment`, with every default filled in.
Settings settings_of(const Job& job, const Settings& experiment, const Catalog& catalog);

struct Difference {
  std::string key, value, other;
};

/// Returns the settings of model and strategy that differ between two experiments on the same machines and mean
/// something in their layouts: sizes that follow from others are compared as they are, layers as the stages have them.
std::vector<Difference> differences(const Settings& one, const Settings& other);

}  // namespace manyworlds::experiments::jobs
