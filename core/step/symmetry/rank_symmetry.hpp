// Rank symmetry: which ranks are equivalent, so that simulating one representative of each class suffices. Under
// `fidelity: analytic` collectives do not affect each other. The events of a rank then follow from its program, the
// entry times of its groups' members and the transfer times on the paths between them. Ranks that agree in these, and
// whose groups have equivalent members, have the same events at the same instants. The classes are the coarsest
// equitable partition of the ranks, found by colour refinement; groups are compared up to rotations that leave their
// collectives unchanged.
//
// Under `fidelity: fluid` collectives share links, so links have classes as well: their rates and latencies, and how
// many groups of each class cross them, by which of their pairs. Ranks, groups and links of an equitable partition go
// alike, since speeds of fluids depend on sums of loads alone, and not on any order of packets.
//
// Packet by packet, what happens at a link follows from the packets that arrive there, and of two that arrive at one
// instant the one goes first whose group has the lower number, or, of one group, whose pair has. So links of one class
// are crossed by groups of the same classes in the same order, each by the same of its merged pairs, in ascending
// order, and each group has its place in that order on each of its links. Then a link of the smaller step, of one rank,
// group and link of each class, is crossed by exactly what crosses each link that it stands for, in the same order: the
// step is a covering of the smaller one, and both have the same events at the same instants. The first groups of their
// classes keep the order: if a group of one class goes before one of another on some link, one does on every link of
// that class, so that the first of the other class has one of the first class before it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/step/layout/dag_cache.hpp"
#include "core/step/layout/rank_layout.hpp"

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

/// Returns the classes of equivalent ranks and groups; `by_kind` has the collectives of each of RankLayout::kinds().
RankSymmetry rank_symmetry_of(RankLayout& layout, const std::vector<KindCollectives>& by_kind);

/// A link that stands for all of its class, and how groups of one class cross each of these links.
struct LinkUse {
  std::uint32_t link = 0;
  std::vector<std::uint32_t> pairs;  // of the DAG of merged members; one may occur several times
  std::uint32_t count = 0;           // groups that cross the link by exactly these
};

struct FluidSymmetry {
  RankSymmetry ranks;
  /// By the first group of a class and the number of the connectivity of a DAG (RankLayout::connectivity_number).
  std::map<std::pair<GroupId, std::uint32_t>, std::vector<LinkUse>> link_uses;
};
/// Returns the classes of ranks, groups and links under fluid fidelity, on pinned paths.
FluidSymmetry fluid_symmetry_of(RankLayout& layout, const std::vector<KindCollectives>& by_kind, DagCache& dags);

struct PacketSymmetry {
  RankSymmetry ranks;
  std::vector<std::uint32_t> representative_link;  // by link; UINT32_MAX for links that nothing crosses
};
/// Returns the classes of ranks, groups and links packet by packet, on pinned paths.
PacketSymmetry packet_symmetry_of(RankLayout& layout, const std::vector<KindCollectives>& by_kind, DagCache& dags);

}  // namespace manyworlds::core::step
