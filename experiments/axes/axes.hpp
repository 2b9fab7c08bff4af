// Axes and zip groups: factors whose product is the sweep. Each factor varies one key, or several together.
#pragma once

#include <string>
#include <vector>

#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {

/// One key and its values.
struct Axis {
  std::string key;  // as the user wrote it
  Target target;
  std::vector<import::Node> values;
  import::Node place;  // location of the key
  bool any = false;    // its values are chosen by a search, which adds them; until then it has one, none
};

/// Axes that vary together; all have the same number of values.
struct Factor {
  std::vector<Axis> axes;
  std::size_t size() const { return axes.front().values.size(); }
};

/// Returns whether an axis of this key may be `any`.
bool may_be_any(const std::string& path);

/// Returns the factors in document order: first `axes`, then each group of `zip`; both may be null. Throws InputError
/// for keys that do not exist or are repeated, and for lists that are empty, differ in length or repeat a value (in a
/// zip group, a combination).
std::vector<Factor> read_factors(const import::Node* axes, const import::Node* zip);

/// Returns the values of a list or of {range: [first, last, "*n" or "+n"]}.
std::vector<import::Node> read_values(const import::Node& node, const Target& target);

/// Returns the option that a key sets, which determines the type of ranges and columns; null for a whole section.
const core::OptionInfo* option_of(const Target& target);

/// Returns a short name of one axis value: "8", "gpt3-13b", "fat_tree(oversubscription=4)".
std::string label(const import::Node& value);

/// Returns whether `value`, given for `above`, sets `target` at any depth.
bool mentions(const import::Node& value, const Target& above, const Target& target);

}  // namespace manyworlds::experiments
