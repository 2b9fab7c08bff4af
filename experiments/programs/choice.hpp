// A word of a file that must be one of a list.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::programs {

/// Returns the index of a word in a list of names; throws InputError with the list, without a file, for member
/// `member`.
template <class List>
std::size_t choice(const import::JsonView& value, const char* member, const List& names) {
  const std::string& text = value.text();
  std::vector<std::string> all;
  for (const auto& name : names) all.emplace_back(name);
  const auto found = std::find(all.begin(), all.end(), text);
  if (found == all.end())
    throw core::InputError(fmt::format("'{}' must be one of {}, not '{}'", member, fmt::join(all, ", "), text));
  return static_cast<std::size_t>(found - all.begin());
}

}  // namespace manyworlds::experiments::programs
