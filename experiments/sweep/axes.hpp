// Axes and zip groups: factors whose product is the sweep. Each factor moves one key, or several together.
#pragma once

#include <string>
#include <vector>

#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {

/// One key and the values it takes.
struct Axis {
  std::string key;  // as the user wrote it
  Target target;
  std::vector<import::Node> values;
  import::Node place;  // of the key
};

/// Axes that move together; all have the same number of values.
struct Factor {
  std::vector<Axis> axes;
  std::size_t size() const { return axes.front().values.size(); }
};

/// The factors of a document in its order: first `axes` (null if absent), then each group of `zip` (null if absent).
/// Throws InputError for keys that do not exist or stand twice, and for lists that are empty, uneven or repeat a value
/// (of a zip group, what its keys are together).
std::vector<Factor> read_factors(const import::Node* axes, const import::Node* zip);

/// A list, or {range: [first, last, "*n" or "+n"]}, as the list of its values.
std::vector<import::Node> read_values(const import::Node& node, const Target& target);

/// The option that a key sets: what ranges count in and columns hold. Null for a whole branch.
const core::OptionInfo* counted(const Target& target);

/// A short name of one axis value: "8", "gpt3-13b", "fat_tree(oversubscription=4)".
std::string label(const import::Node& value);

/// Is `target` set, somewhere inside, by `value` given for `above`?
bool mentions(const import::Node& value, const Target& above, const Target& target);

}  // namespace manyworlds::experiments
