// "unknown key, did you mean": the nearest of the known names by edit distance.
#pragma once

#include <string>
#include <vector>

namespace manyworlds::experiments {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
std::size_t edit_distance(const std::string& a, const std::string& b);

/// "; did you mean 'x'?" where a name is near; otherwise "; known are a, b, c" (the names in their given order).
std::string suggestion(const std::string& given, const std::vector<std::string>& known);

}  // namespace manyworlds::experiments
