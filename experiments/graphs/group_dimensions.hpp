// Dimensions for groups that any ranks may form: groups of one shape that share no rank are one dimension, so that
// ranks with the same part in a job name their communicators alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace manyworlds::experiments::graphs {

/// Returns the dimension of each group; groups of a dimension have the same distances between their ranks and share
/// none.
std::vector<std::uint32_t> dimensions_of(const std::vector<std::vector<std::uint32_t>>& groups);

/// The transfers of a pair, in the order of one end: what matches at the other.
struct PairEnd {
  std::uint64_t tag = 0;
  std::int64_t bytes = 0;
};

/// Returns for each send of a pair the lane in which it travels, and for each receive the same: in one lane, both ends
/// have the same order, and there are as few lanes as that allows. Empty vectors if they do not match.
struct Lanes {
  bool match = false;
  std::vector<std::uint32_t> of_sends, of_receives;
};
Lanes lanes_of(const std::vector<PairEnd>& sends, const std::vector<PairEnd>& receives);

/// Returns the first thing in which sends and receives that do not match differ, by the smallest tag.
std::string mismatch_of(const std::vector<PairEnd>& sends, const std::vector<PairEnd>& receives);

}  // namespace manyworlds::experiments::graphs
