// Rules about experts: how they are placed, routed, batched and copied.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> expert_rules();
std::vector<Rule> routing_rules();

}  // namespace manyworlds::experiments
