// Rules of GPUs, and of machines of several kinds in one cluster.
#pragma once

#include <vector>

#include "experiments/rules/validity.hpp"

namespace manyworlds::experiments {

std::vector<Rule> mixed_machine_rules();
/// Formats that GPUs have, and their peaks.
std::vector<Rule> precision_rules();

}  // namespace manyworlds::experiments
