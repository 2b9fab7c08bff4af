// Rules about overlap: communication in chunks, on compute units, among context-parallel ranks, and of experts.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

/// These rules rely on those of models and layouts.
std::vector<Rule> overlap_rules();

}  // namespace manyworlds::experiments
