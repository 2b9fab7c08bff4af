// Tables of how routers spread tokens over experts, as CSV; docs/formats.md describes the columns.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::import {

/// Weights by expert of each layer that the table has; layers and experts count from 0.
using RoutingTable = std::map<std::int64_t, std::vector<std::int64_t>>;

/// Throws InputError, with `name` and the line, for anything that is not such a table: an unknown column, a figure that
/// is missing or out of range, an expert that a layer has twice or lacks, a layer without tokens, shares of a layer
/// that do not add up to 1.
RoutingTable parse_measured_routing(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
