// Rules about the cost of a token and of a training run: settings that need each other, and that exclude each other.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> cost_rules();

}  // namespace manyworlds::experiments
