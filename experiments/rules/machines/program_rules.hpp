// Rules of experiments whose programs are given.
#pragma once

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> program_rules();

}  // namespace manyworlds::experiments
