// Rules about experts: how they are placed, routed, batched and copied.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

std::vector<Rule> expert_rules();
std::vector<Rule> routing_rules();
/// Returns what of a strategy takes a pass of a layer with experts apart: copies of hot experts, the shared expert
/// beside the exchange, or weight gradients that are delayed.
Violation split_expert_passes(const core::workload::Strategy& strategy);

}  // namespace manyworlds::experiments
