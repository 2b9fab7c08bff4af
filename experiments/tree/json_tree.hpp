// Parses JSON into the tree that YAML is parsed into, so that messages name the file, the line and the key, and values
// are read by the same functions.
#pragma once

#include <string>
#include <string_view>

#include "experiments/text/text.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::import {

/// Parses `text`; `name` is its name in messages. A value has the line of its key, an item of a list that of the list's
/// key. Python's Infinity and NaN, which JSON does not have, are read as null, and
/// control characters in texts as blanks. Throws InputError for invalid JSON,
/// repeated keys, nesting deeper than 64 levels, and more than `max_bytes` bytes.
Node parse_json_tree(std::string_view text, const std::string& name, std::size_t max_bytes = kMaxTextBytes);

}  // namespace manyworlds::experiments::import
