// Rules about losses in chunks of tokens.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> loss_rules();

}  // namespace manyworlds::experiments
