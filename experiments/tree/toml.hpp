// Parses TOML into the tree that YAML is parsed into, so that messages name the file, the line and the key, and values
// are read by the same functions.
#pragma once

#include <string>
#include <string_view>

#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::import {

/// Parses `text`; `name` is its name in messages. Tables are mappings, arrays lists; texts are quoted, numbers, true
/// and false are not, and dates stand as they are written. Throws InputError for invalid TOML, repeated keys, nesting
/// deeper than 64 levels, and more than kMaxTextBytes.
Node parse_toml(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
