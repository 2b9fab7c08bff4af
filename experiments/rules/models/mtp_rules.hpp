// Rules about layers for multi-token prediction.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> mtp_rules();

}  // namespace manyworlds::experiments
