// The speeds of a job on numbers of GPUs, as the results of a sweep predict them.
#pragma once

#include <string>
#include <vector>

#include "farm/allocation/job.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::allocation {

/// Returns the speed of the fastest experiment that ran, per number of GPUs, of those that satisfy `where` (all if it
/// is empty). `name` is the results' name in messages. Throws core::InputError if none did, if a condition is wrong,
/// and if the steps of these experiments train different numbers of tokens, as they cannot be counted together then.
std::vector<SpeedPoint> predicted_speeds(const io::Results& results, const std::string& where, const std::string& name);

}  // namespace manyworlds::farm::allocation
