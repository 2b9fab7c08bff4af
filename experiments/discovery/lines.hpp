// Lines and numbers of the plain text that tools print.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/number_in.hpp"
#include "experiments/text/lines.hpp"

namespace manyworlds::experiments::clusters {

using import::for_each_line;

/// Returns the words between blanks.
std::vector<std::string_view> words_of(std::string_view line);

using core::number_in;

/// Returns what stands in the first pair of double quotes; nothing if there is none.
std::optional<std::string_view> quoted_in(std::string_view line);

}  // namespace manyworlds::experiments::clusters
