// Rules of what runs beside what: communication in chunks, on compute units, and among context-parallel ranks.
#pragma once

#include <vector>

#include "experiments/rules/validity.hpp"

namespace manyworlds::experiments {

/// They rely on the rules of models and layouts.
std::vector<Rule> overlap_rules();

}  // namespace manyworlds::experiments
