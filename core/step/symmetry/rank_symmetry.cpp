#include "core/step/symmetry/rank_symmetry.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/step/symmetry/link_colours.hpp"

namespace manyworlds::core::step {
namespace {

/// Assigns consecutive numbers to pairs of numbers, by first occurrence.
class PairNumbering {
 public:
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) {
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    return numbers_.try_emplace(static_cast<std::uint64_t>(a) << 32 | b, next).first->second;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(numbers_.size()); }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

/// The properties of a group that do not depend on its members' classes: the collectives that it runs, their paths, and
/// the smallest rotation that leaves both unchanged.
struct GroupProfile {
  std::vector<std::uint32_t> route_signature;
  std::uint32_t rotation = 1;
};

GroupProfile profile_of(RankLayout& layout, GroupId group, const KindCollectives& collectives) {
  const Group& communicator = layout.groups()[group];
  const auto members = static_cast<std::uint32_t>(communicator.ranks.size());
  GroupProfile result{{communicator.kind}, std::min(collectives.rotation_unit, members)};
  for (const auto& dag : collectives.dags) {
    const PathClasses& path_classes = layout.path_classes(group, *dag);
    result.route_signature.push_back(path_classes.number);
    if (result.rotation < members)
      result.rotation = std::lcm(result.rotation, layout.rotation_period(dag, path_classes));
  }
  return result;
}

/// Returns the least multiple of `unit` by which the members of a group may be rotated: their colours are periodic, and
/// those of links if these matter.
std::uint32_t rotation_of(GroupId group, const std::vector<RankId>& ranks,
                          const IdVector<RankId, std::uint32_t>& colours, std::uint32_t unit, LinkColours* links) {
  const auto repeats = [&](std::uint32_t shift) {
    for (std::size_t i = shift; i < ranks.size(); ++i)
      if (colours[ranks[i]] != colours[ranks[i - shift]]) return false;
    return links == nullptr || links->may_rotate(group, shift);
  };
  std::uint32_t smallest = unit;
  while (smallest < ranks.size() && (ranks.size() % smallest != 0 || !repeats(smallest))) smallest += unit;
  return smallest;
}

/// Refines the classes of ranks and groups, and of links if these matter, until nothing more is told apart.
RankSymmetry refined(RankLayout& layout, const std::vector<KindCollectives>& by_kind, LinkColours* links) {
  const IdVector<GroupId, Group>& groups = layout.groups();
  IdVector<GroupId, std::uint32_t> base_rotation, route_signature;
  std::map<std::vector<std::uint32_t>, std::uint32_t> profile_numbers;
  for (const GroupId group : groups.ids()) {
    GroupProfile profile = profile_of(layout, group, by_kind[groups[group].kind]);
    base_rotation.push_back(profile.rotation);
    route_signature.push_back(
        profile_numbers
            .try_emplace(std::move(profile.route_signature), static_cast<std::uint32_t>(profile_numbers.size()))
            .first->second);
  }
  RankSymmetry result;
  IdVector<RankId, std::uint32_t> colours;
  for (const RankId rank : layout.rank_ids()) colours.push_back(layout.class_of(rank));
  IdVector<GroupId, std::uint32_t> group_class(groups.size());  // the number of its equivalence class
  for (std::uint32_t known = 0;;) {
    result.rotation.clear();
    std::map<std::vector<std::uint32_t>, std::uint32_t> group_classes;
    for (const GroupId group : groups.ids()) {
      const std::vector<RankId>& ranks = groups[group].ranks;
      const std::uint32_t rotation = rotation_of(group, ranks, colours, base_rotation[group], links);
      result.rotation.push_back(rotation);
      std::vector<std::uint32_t> signature{route_signature[group]};
      for (std::uint32_t i = 0; i < result.rotation.back(); ++i) signature.push_back(colours[ranks[i]]);
      if (links != nullptr) links->append_paths(group, rotation, signature);
      group_class[group] =
          group_classes.try_emplace(std::move(signature), static_cast<std::uint32_t>(group_classes.size()))
              .first->second;
    }
    std::uint32_t colour_count = 0;
    for (std::size_t role = 0; role < layout.roles(); ++role) {
      PairNumbering slot_numbers, next;
      for (const RankId rank : layout.rank_ids()) {
        const auto current_role = static_cast<workload::Role>(role);
        const GroupId group = layout.group_of(rank, current_role);
        if (group == RankLayout::kNoGroup)
          colours[rank] = next(colours[rank], UINT32_MAX);
        else
          colours[rank] = next(colours[rank], slot_numbers(group_class[group], layout.member_of(rank, current_role) %
                                                                                   result.rotation[group]));
      }
      colour_count = next.size();
    }
    std::uint32_t found = colour_count;
    if (links != nullptr)
      found += static_cast<std::uint32_t>(group_classes.size()) + links->refine(group_class, result.rotation);
    if (found == known) break;
    known = found;
  }
  for (const RankId rank : layout.rank_ids()) {
    const RepresentativeId representative(colours[rank]);
    if (representative == result.representative_rank.next_id())
      result.representative_rank.push_back(rank), result.count.push_back(0);
    ++result.count[representative];
    result.representative_of.push_back(representative);
  }
  std::vector<GroupId> first_of_class;
  for (const GroupId group : groups.ids()) {
    if (group_class[group] == first_of_class.size()) first_of_class.push_back(group);
    result.canonical.push_back(first_of_class[group_class[group]]);
  }
  return result;
}

}  // namespace

RankSymmetry trivial_symmetry(const RankLayout& layout) {
  RankSymmetry result;
  for (const RankId rank : layout.rank_ids()) {
    result.representative_of.push_back(RepresentativeId(rank.value()));
    result.representative_rank.push_back(rank);
  }
  result.count.assign(layout.ranks(), 1);
  for (const GroupId group : layout.groups().ids()) {
    result.canonical.push_back(group);
    result.rotation.push_back(static_cast<std::uint32_t>(layout.groups()[group].ranks.size()));
  }
  return result;
}

RankSymmetry rank_symmetry_of(RankLayout& layout, const std::vector<KindCollectives>& by_kind) {
  return refined(layout, by_kind, nullptr);
}

FluidSymmetry fluid_symmetry_of(RankLayout& layout, const std::vector<KindCollectives>& by_kind, DagCache& dags) {
  LinkColours links(layout, by_kind, dags, LinkOrder::none);
  FluidSymmetry result{refined(layout, by_kind, &links), {}};
  result.link_uses = links.uses(result.ranks);
  return result;
}

PacketSymmetry packet_symmetry_of(RankLayout& layout, const std::vector<KindCollectives>& by_kind, DagCache& dags) {
  LinkColours links(layout, by_kind, dags, LinkOrder::of_crossings);
  RankSymmetry ranks = refined(layout, by_kind, &links);
  return {std::move(ranks), links.representatives()};
}

}  // namespace manyworlds::core::step
