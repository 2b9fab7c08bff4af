// Connections that go by one cable and no other: those with a switch that reduces or replicates.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/error.hpp"
#include "core/network/fabric/graph.hpp"

namespace manyworlds::core::network {

/// Returns the number that a link of the fabric `whole` has in `left`, in which some of its links are missing and the
/// others are in the same order. Throws InputError if it is missing.
inline std::uint32_t kept_link(const Graph& left, const Graph& whole, std::uint32_t link) {
  const std::size_t missing = whole.links.size() - left.links.size();
  const Link& wanted = whole.links[link];
  for (std::size_t at = std::min<std::size_t>(link, left.links.size() - 1) + 1; at-- > 0 && at + missing >= link;)
    if (left.links[at].from == wanted.from && left.links[at].to == wanted.to) return static_cast<std::uint32_t>(at);
  throw InputError(fmt::format(
      "faults.fails: {}-{} has failed, by which a switch reduces what a GPU sends; there is no other way to "
      "that switch (take another algorithm of collectives)",
      whole.names[wanted.from], whole.names[wanted.to]));
}

}  // namespace manyworlds::core::network
