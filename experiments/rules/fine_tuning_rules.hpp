// Rules about what is trained: frozen weights and pairs of low rank, or nothing, where a step is a forward pass alone.
#pragma once

#include <vector>

#include "experiments/rules/validity.hpp"

namespace manyworlds::experiments {

std::vector<Rule> fine_tuning_rules();

}  // namespace manyworlds::experiments
