// Rules of what a strategy does with activations: which are made again, which go to the host, and where; and of the
// layers that sections have.
#pragma once

#include <vector>

#include "experiments/rules/validity.hpp"

namespace manyworlds::experiments {

std::vector<Rule> section_rules();
std::vector<Rule> activation_rules();

}  // namespace manyworlds::experiments
