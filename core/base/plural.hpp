// Nouns for people, in the form that goes with a count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace manyworlds::core {

/// Returns "rank" for one and "ranks" for any other count; for nouns whose plural ends in -s.
inline std::string plural(std::uint64_t count, std::string_view noun) {
  return std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace manyworlds::core
