// Rules about the network: the options of its transport, and the fabric that the cluster and its faults leave.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> transport_rules();
/// These rules build the fabric, and rely on those of machines and transports.
std::vector<Rule> fabric_rules();

}  // namespace manyworlds::experiments
