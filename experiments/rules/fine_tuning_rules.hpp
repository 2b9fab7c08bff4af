// Rules about what is trained: frozen weights and pairs of low rank.
#pragma once

#include <vector>

#include "experiments/rules/validity.hpp"

namespace manyworlds::experiments {

std::vector<Rule> fine_tuning_rules();

}  // namespace manyworlds::experiments
