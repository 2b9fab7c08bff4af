// Rules about steps in which nothing is trained: forward passes that score samples or generate tokens.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> inference_rules();

}  // namespace manyworlds::experiments
