// Ranks that go alike. Where collectives do not touch each other (fidelity: analytic), what happens to a rank follows
// from its program, from when the members of its groups enter, and from what the paths between them take: ranks that
// cannot be told apart by these, nor by their groups' other members, do the same at the same instants. One of them is
// enough to be simulated: a player, for all ranks that it stands for. (The coarsest equitable partition of the ranks,
// by colour refinement; groups are told apart up to rotations that leave their collectives as they are.)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/step/world/layout.hpp"

namespace manyworlds::core::step {

struct Likeness {
  std::vector<std::uint32_t> player_of;  // by rank
  std::vector<std::uint32_t> first;      // by player: the first rank that it stands for, ascending
  std::vector<std::uint32_t> count;      // by player: how many it stands for
  std::vector<std::uint32_t> like;       // by group: the first group that goes as it does
  std::vector<std::uint32_t> turn;       // by group: members i and i + turn are one player
};

/// Every rank for itself.
Likeness each_alone(const Layout& layout);

/// What groups of a kind run.
struct Collectives {
  std::vector<std::shared_ptr<const collective::Dag>> dags;
  bool turn = true;  // false: these do not say how unequal some transfers are, so members keep their places
};
/// `of_kind`: by number of Layout::kinds().
Likeness likeness_of(Layout& layout, const std::vector<Collectives>& of_kind);

}  // namespace manyworlds::core::step
