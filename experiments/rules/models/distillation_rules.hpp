// Rules about a frozen model that teaches another.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

/// Rules about a teacher whose output distribution the model learns, which rely on those of models, layouts and stages.
std::vector<Rule> distillation_rules();

}  // namespace manyworlds::experiments
