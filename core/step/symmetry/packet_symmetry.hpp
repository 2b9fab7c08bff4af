// Rank symmetry under packets: which ranks of a step go alike although their collectives share links.
//
// A shift of the ranks of every stage by the same number of places maps ranks onto ranks. If it maps programs, groups
// and the links of all their routes onto equal ones, then the step on its network is a covering of a smaller one, in
// which everything that shifts map onto each other is one. What happens at a rank depends on its own streams, and what
// happens at a link on the packets that arrive there, so the smaller step has the same events at the same instants. As
// for a single collective (network/merged_collective.hpp), two conditions keep the order in which a link serves packets
// that arrive at one instant: its groups, and the connections of each, still ascend strictly after merging.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/step/layout/dag_cache.hpp"
#include "core/step/layout/step_programs.hpp"
#include "core/step/symmetry/rank_symmetry.hpp"

namespace manyworlds::core::step {

struct PacketSymmetry {
  RankSymmetry ranks;
  std::vector<std::uint32_t> representative_link;  // by link of the graph
  std::uint32_t copies = 1;                        // ranks, links and transfers that each one stands for
};

/// Returns the symmetry by the smallest shift that has these properties, or nothing if there is none. `by_kind` has the
/// collectives of each of RankLayout::kinds().
std::optional<PacketSymmetry> packet_symmetry_of(RankLayout& layout, const std::vector<ShapedOperations>& by_kind,
                                                 DagCache& dags);

}  // namespace manyworlds::core::step
