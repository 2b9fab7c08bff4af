// A sequence in as many contiguous parts as are asked for, whose largest cost is as small as can be.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Whether a split follows from what stages weigh (by_parameters, by_time, by_memory). Whoever makes a configuration of
/// such a strategy lists its layers (step::split_layers()), and the split is even from then on.
bool is_weighed(LayerSplit split);

/// What a part costs that has items `begin` to `end` - 1: no less than 0, and no less if it has further ones at its
/// end.
using PartCost = std::function<std::int64_t(std::size_t part, std::int64_t begin, std::int64_t end)>;

/// Returns how many of `items` each part has such that the largest cost is least, exactly (dynamic programming over the
/// parts and the items before them). Part i has `least[i]` items or more. Of several such splits it is the one whose
/// first part has fewest items, then the second, and so on. Returns nothing if there are too few items.
std::optional<std::vector<std::int64_t>> contiguous_split(std::int64_t items, const std::vector<std::int64_t>& least,
                                                          const PartCost& cost);

/// The same, but of several such splits it is among those whose largest `second` cost is least, among these the one of
/// which the squares of the second costs have the least sum, and only then the one whose first part has fewest items.
/// The sum of these squares is below 2^127.
std::optional<std::vector<std::int64_t>> contiguous_split(std::int64_t items, const std::vector<std::int64_t>& least,
                                                          const PartCost& cost, const PartCost& second);

}  // namespace manyworlds::core::workload
