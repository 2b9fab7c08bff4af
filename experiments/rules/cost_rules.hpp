// Rules of what a token and a training run cost: what must be known together, and what contradicts.
#pragma once

#include <vector>

#include "experiments/rules/validity.hpp"

namespace manyworlds::experiments {

std::vector<Rule> cost_rules();

}  // namespace manyworlds::experiments
