// The classes of links (rank_symmetry.hpp): which links go alike, as fluids or packet by packet.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/step/symmetry/rank_symmetry.hpp"

namespace manyworlds::core::step {

/// Whether links that the same traffic crosses in another order are told apart.
enum class LinkOrder : std::uint8_t { none, of_crossings };

/// The classes of links, refined along with those of groups.
class LinkColours {
 public:
  LinkColours(RankLayout& layout, const std::vector<KindCollectives>& by_kind, DagCache& dags, LinkOrder order);

  /// Returns whether the colours of a group's paths, and its places on their links if these are ordered, are unchanged
  /// when its members are rotated, and its pairs on every ordered link still ascend when merged.
  bool may_rotate(GroupId group, std::uint32_t rotation);
  /// Appends the colours on the paths of a group whose members are merged by a rotation, and its places there if links
  /// are ordered.
  void append_paths(GroupId group, std::uint32_t rotation, std::vector<std::uint32_t>& signature);
  /// Tells links apart that groups of other classes cross, or by other pairs. Returns the number of colours.
  std::uint32_t refine(const IdVector<GroupId, std::uint32_t>& group_class,
                       const IdVector<GroupId, std::uint32_t>& rotation);
  /// Returns the first link of the colour of each link; UINT32_MAX for links that nothing crosses.
  std::vector<std::uint32_t> representatives() const;
  /// Returns how the groups of each class cross the first link of each colour, by the first group of the class.
  std::map<std::pair<GroupId, std::uint32_t>, std::vector<LinkUse>> uses(const RankSymmetry& symmetry);

 private:
  /// A pair that crosses a link, as its hop-th if links are ordered, else as its 0th: loads have no order either.
  struct Passage {
    std::uint32_t connectivity, pair, hop;
    auto operator<=>(const Passage&) const = default;
  };
  using Passages = std::vector<Passage>;  // ascending
  struct Crossing {
    GroupId group;
    std::uint32_t passages = 0;  // index in full_passages_
  };
  /// A DAG of each connectivity of the collectives of a kind.
  struct Connected {
    std::shared_ptr<const collective::Dag> dag;
    std::uint32_t connectivity = 0;
  };
  const std::vector<network::Route>& routes(GroupId group, const Connected& one) {
    return layout_.connections_of(group, one.connectivity)->routes;
  }
  /// Returns the place of a group among those that cross a link, from 0, in the order of their numbers.
  std::uint32_t place_of(GroupId group, std::uint32_t link) const;
  /// Returns whether the pairs of each link still ascend strictly when members are merged.
  bool keeps_order(const std::vector<network::Route>& paths, const collective::QuotientDag& quotient);
  /// Returns the number of those passages once members are merged; an index in merged_passages_.
  std::uint32_t merged(const Crossing& crossing, std::uint32_t rotation);

  RankLayout& layout_;
  DagCache& dags_;
  LinkOrder order_;
  std::vector<std::vector<Connected>> by_kind_;
  std::vector<std::uint32_t> colours_;                           // by link
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges_;  // (used link, end of its crossings), ascending
  std::vector<std::uint32_t> range_of_;                          // by link, if ordered: its index in ranges_
  std::vector<Crossing> crossings_;                              // by used link, ascending by group
  std::vector<Passages> full_passages_, merged_passages_;
  std::map<Passages, std::uint32_t> merged_numbers_;
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> merged_of_;  // by kind, rotation and full passages
  std::vector<std::pair<std::uint32_t, std::uint32_t>> last_pair_;   // by link: (turn, the next merged pair)
  std::uint32_t turn_ = 0;                                           // of keeps_order()
};

}  // namespace manyworlds::core::step
