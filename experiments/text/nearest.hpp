// Suggestions for unknown names ("did you mean"): the nearest known name by edit distance.
#pragma once

#include <string>
#include <vector>

namespace manyworlds::experiments {

/// Returns the number of edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
std::size_t edit_distance(const std::string& a, const std::string& b);

/// Returns "; did you mean 'x'?" if a known name is near, otherwise "; known are a, b, c" in the given order.
std::string suggestion(const std::string& given, const std::vector<std::string>& known);

}  // namespace manyworlds::experiments
