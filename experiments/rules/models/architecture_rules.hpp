// Rules about models whose layers are given as data: the sizes of their parts, and what is not done with them.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> architecture_rules();
/// Rules about parts that tensor-parallel ranks share out by samples.
std::vector<Rule> data_part_rules();
/// These rules rely on those of stages.
std::vector<Rule> network_stage_rules();

}  // namespace manyworlds::experiments
