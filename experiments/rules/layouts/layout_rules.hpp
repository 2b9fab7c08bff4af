// Rules about the sizes of a model and about how ranks, stages and batches divide it.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> model_rules();
std::vector<Rule> attention_rules();
/// These rules rely on those of models.
std::vector<Rule> layout_rules();

}  // namespace manyworlds::experiments
