// What the values of keys are: one table for all families, so that a value of another kind is refused wherever its key
// stands, whether or not a family reads it.
#pragma once

#include <string>
#include <string_view>

#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::models {

/// Returns whether a key says nothing that a layer's kernels depend on, in any family: names, generation, initial
/// values, epsilons, tokens, losses.
bool is_plain_key(std::string_view key);

/// Returns whether the table has a key: some family does.
bool is_known_key(std::string_view key);

/// Returns what is wrong with the value of a key of the table: "'rope_theta' must be a number above 0, not 'high'";
/// empty if nothing is, if the value is null, which stands for an absent key, and if the table does not have the key.
std::string wrong_kind(std::string_view key, const import::Node& value);
/// Returns the same of a key of the mapping of a rotation (`rope_scaling`, `rope_parameters`).
std::string wrong_kind_in_rotation(std::string_view key, const import::Node& value);
/// Returns whether the table has a key of that mapping.
bool is_rotation_key(std::string_view key);

}  // namespace manyworlds::experiments::models
