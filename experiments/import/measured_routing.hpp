// CSV tables of measured router loads (tokens per expert and layer); docs/formats.md describes the columns.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::import {

/// Weights by expert for each layer in the table; layers and experts count from 0.
using RoutingTable = std::map<std::int64_t, std::vector<std::int64_t>>;

/// Parses a table; `name` is the file name in messages. Throws InputError with the line for an unknown column, a number
/// that is missing or out of range, an expert that a layer has twice or lacks, a layer without tokens, and shares of a
/// layer that do not add up to 1.
RoutingTable parse_measured_routing(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
