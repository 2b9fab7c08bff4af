// Reads an entry of the catalog: help, default source and certainty, and values, each of which may have its own.
#pragma once

#include <string>
#include <vector>

#include "experiments/catalog/catalog_entry.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

/// Throws InputError with file and line.
CatalogEntry read_entry(const std::string& kind, const import::Node& root);

/// Throws InputError at an entry, with the nearest of the known keys.
[[noreturn]] void fail_unknown_key(const import::Entry& entry, const std::vector<std::string>& known);

}  // namespace manyworlds::experiments
