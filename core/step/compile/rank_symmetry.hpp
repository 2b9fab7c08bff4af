// Rank symmetry: which ranks are equivalent, so that simulating one representative of each class suffices. Under
// `fidelity: analytic` collectives do not affect each other. The events of a rank then follow from its program, the
// entry times of its groups' members and the transfer times on the paths between them. Ranks that agree in these, and
// whose groups have equivalent members, have the same events at the same instants. The classes are the coarsest
// equitable partition of the ranks, found by colour refinement; groups are compared up to rotations that leave their
// collectives unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/step/compile/rank_layout.hpp"

namespace manyworlds::core::step {

struct RankSymmetry {
  IdVector<RankId, RepresentativeId> representative_of;
  IdVector<RepresentativeId, RankId> representative_rank;  // the first rank of its class; ascending
  IdVector<RepresentativeId, std::uint32_t> count;         // the number of ranks in its class
  IdVector<GroupId, GroupId> canonical;                    // the first equivalent group of each
  IdVector<GroupId, std::uint32_t> rotation;               // members i and i + rotation of the group are equivalent
};

/// Returns the trivial symmetry, in which every rank is its own representative.
RankSymmetry trivial_symmetry(const RankLayout& layout);

/// The collectives that groups of one kind run.
struct KindCollectives {
  std::vector<std::shared_ptr<const collective::Dag>> dags;
  bool rotation =
      true;  // false: the DAGs do not hold the unequal bytes of some transfers, so members may not be rotated
};
/// Returns the classes of equivalent ranks and groups; `by_kind` has the collectives of each of RankLayout::kinds().
RankSymmetry rank_symmetry_of(RankLayout& layout, const std::vector<KindCollectives>& by_kind);

}  // namespace manyworlds::core::step
