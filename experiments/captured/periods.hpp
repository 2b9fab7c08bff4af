// What repeats in a sequence of calls: its longest stretch with a period.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace manyworlds::experiments::captured {

/// A stretch [begin, end) in which form[i] == form[i + period], at least two periods long, and no longer on either
/// side.
struct Repetition {
  std::uint32_t begin = 0, end = 0, period = 0;
  bool operator==(const Repetition&) const = default;
};

/// Returns the repetition that has the most work, of those whose period communicates if there are such: `work` and
/// `communication` tell which calls are. Of equals that with the shorter period, then the earlier one; nothing if none
/// has any work. Finds all maximal repetitions by the longest Lyndon words that begin at each place, under an order of
/// the forms and under its reverse (Bannai, I, Inenaga, Nakashima, Takeda, Tsuruta: "The runs theorem", SIAM J. Comput.
/// 46(5), 2017), in O(n log n).
std::optional<Repetition> find_repetition(const std::vector<std::uint64_t>& forms, const std::vector<bool>& work,
                                          const std::vector<bool>& communication);

}  // namespace manyworlds::experiments::captured
