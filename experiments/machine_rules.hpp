// Rules of machines of several kinds in one cluster.
#pragma once

#include <vector>

#include "experiments/validity.hpp"

namespace manyworlds::experiments {

std::vector<Rule> mixed_machine_rules();

}  // namespace manyworlds::experiments
