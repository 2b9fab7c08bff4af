// Rules about what is trained: frozen weights and pairs of low rank; a frozen model that teaches; or nothing, where a
// step is a forward pass alone.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> fine_tuning_rules();
/// Rules about a teacher whose output distribution the model learns, which rely on those of models, layouts and stages.
std::vector<Rule> distillation_rules();

}  // namespace manyworlds::experiments
