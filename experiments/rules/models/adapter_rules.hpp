// Rules about frozen weights in 4 bits, and about norms that are trained beside pairs of low rank.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> adapter_rules();

}  // namespace manyworlds::experiments
