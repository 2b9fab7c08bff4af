// Rules about nodes and GPUs, and about heterogeneous clusters.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> machine_rules();
std::vector<Rule> mixed_machine_rules();
/// Rules about number formats of GPUs and their peak rates.
std::vector<Rule> precision_rules();

}  // namespace manyworlds::experiments
