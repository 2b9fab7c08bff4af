// Rules about what is trained of a model: frozen weights, and pairs of low rank beside them.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> fine_tuning_rules();

}  // namespace manyworlds::experiments
