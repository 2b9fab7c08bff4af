// Rules about activations (which are recomputed, which are offloaded to the host, and where) and about the number of
// layers per stage.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> stage_rules();
std::vector<Rule> activation_rules();

}  // namespace manyworlds::experiments
