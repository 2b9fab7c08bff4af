// Rules about sufficient factors, which replicas may exchange instead of summing gradients.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> factor_rules();

}  // namespace manyworlds::experiments
