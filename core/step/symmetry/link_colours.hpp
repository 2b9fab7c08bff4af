// The classes of links under fluid fidelity (rank_symmetry.hpp): which links go alike.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/step/symmetry/rank_symmetry.hpp"

namespace manyworlds::core::step {

/// The classes of links, refined along with those of groups.
class LinkColours {
 public:
  LinkColours(RankLayout& layout, const std::vector<KindCollectives>& by_kind, DagCache& dags);

  /// Returns the least multiple of `rotation` that divides the members of a group, under which the colours of its paths
  /// do not change.
  std::uint32_t rotation_of(GroupId group, std::uint32_t rotation);
  /// Appends the colours on the paths of a group whose members are merged by a rotation.
  void append_paths(GroupId group, std::uint32_t rotation, std::vector<std::uint32_t>& signature);
  /// Tells links apart that groups of other classes cross, or by other pairs. Returns the number of colours.
  std::uint32_t refine(const IdVector<GroupId, std::uint32_t>& group_class,
                       const IdVector<GroupId, std::uint32_t>& rotation);
  /// Returns how the groups of each class cross the first link of each colour, by the first group of the class.
  std::map<std::pair<GroupId, std::uint32_t>, std::vector<LinkUse>> uses(const RankSymmetry& symmetry);

 private:
  using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // (connectivity, pair), ascending
  struct Crossing {
    GroupId group;
    std::uint32_t pairs = 0;  // index in full_pairs_
  };
  /// A DAG of each connectivity of the collectives of a kind.
  struct Connected {
    std::shared_ptr<const collective::Dag> dag;
    std::uint32_t connectivity = 0;
  };
  const std::vector<network::Route>& routes(GroupId group, const Connected& one) {
    return layout_.connections_of(group, one.connectivity)->routes;
  }
  /// Returns the number of those pairs once members are merged; an index in merged_pairs_.
  std::uint32_t merged(const Crossing& crossing, std::uint32_t rotation);

  RankLayout& layout_;
  DagCache& dags_;
  std::vector<std::vector<Connected>> by_kind_;
  std::vector<std::uint32_t> colours_;                           // by link
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges_;  // (used link, end of its crossings), ascending
  std::vector<Crossing> crossings_;                              // by used link, ascending by group
  std::vector<Pairs> full_pairs_, merged_pairs_;
  std::map<Pairs, std::uint32_t> merged_numbers_;
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> merged_of_;  // by kind, rotation and full pairs
};

}  // namespace manyworlds::core::step
