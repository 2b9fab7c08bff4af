#include "core/step/symmetry/packet_symmetry.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::step {
namespace {

using network::Route;

constexpr std::uint32_t kNone = UINT32_MAX;

/// Where a shift takes a group, and how far its members move if it stays where it is.
struct GroupImage {
  GroupId group;
  std::uint32_t member_shift = 0;
};

/// One shift of the ranks, and whether it leaves a step on its network as it is.
class Shift {
 public:
  Shift(RankLayout& layout, const std::vector<ShapedOperations>& by_kind, DagCache& dags, std::uint32_t places)
      : layout_(layout), by_kind_(by_kind), dags_(dags), places_(places), links_(layout.graph().links.size()) {}

  bool is_symmetry() { return maps_ranks() && maps_groups() && maps_links() && keeps_orders(); }
  PacketSymmetry symmetry() const;

 private:
  RankId shifted(RankId rank) const {
    const std::uint32_t per_stage = layout_.ranks_per_stage(), first = layout_.stage_of(rank) * per_stage;
    return RankId(first + (rank.value() - first + places_) % per_stage);
  }
  bool maps_ranks() const {
    for (const RankId rank : layout_.rank_ids())
      if (layout_.class_of(shifted(rank)) != layout_.class_of(rank)) return false;
    return true;
  }
  bool maps_groups();
  bool maps_group(GroupId group);
  bool may_rotate(std::uint32_t kind, std::uint32_t member_shift);
  bool maps_links();
  bool maps_route(const Route& route, const Route& image);
  bool keeps_orders();
  bool keeps_order_of_groups(GroupId group);
  bool rotates(GroupId group) const { return images_[group].group == group; }
  std::uint32_t rotation(GroupId group) const {
    const auto members = static_cast<std::uint32_t>(layout_.groups()[group].ranks.size());
    return rotates(group) ? std::gcd(images_[group].member_shift, members) : members;
  }
  /// Returns the DAGs of a group that differ in their connections.
  const std::vector<std::shared_ptr<const collective::Dag>>& dags_of(GroupId group);

  RankLayout& layout_;
  const std::vector<ShapedOperations>& by_kind_;
  DagCache& dags_;
  std::uint32_t places_;
  std::size_t links_;
  IdVector<GroupId, GroupImage> images_;
  IdVector<GroupId, GroupId> canonical_;
  std::vector<std::uint32_t> to_, from_;  // by link: its image and what it is the image of, or kNone
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> may_rotate_;  // by kind and shift of members
  std::map<std::pair<std::uint32_t, bool>, std::vector<std::shared_ptr<const collective::Dag>>> dags_of_kind_;
  std::vector<GroupId> last_group_, last_canonical_;  // by link, in keeps_orders()
};

const std::vector<std::shared_ptr<const collective::Dag>>& Shift::dags_of(GroupId group) {
  const std::uint32_t kind = layout_.groups()[group].kind;
  const auto [slot, is_new] = dags_of_kind_.try_emplace({kind, rotates(group)});
  if (!is_new) return slot->second;
  std::set<std::uint32_t> connectivities;
  for (const collective::Shape& shape : by_kind_[kind].shapes) {
    const auto dag = rotates(group) ? dags_.canonical(shape) : dags_.get(shape);
    if (connectivities.insert(layout_.connectivity_number(*dag)).second) slot->second.push_back(dag);
  }
  return slot->second;
}

/// Returns whether all collectives of a kind of groups stay as they are when its members are rotated.
bool Shift::may_rotate(std::uint32_t kind, std::uint32_t member_shift) {
  const auto [known, is_new] = may_rotate_.try_emplace({kind, member_shift}, false);
  if (!is_new) return known->second;
  const std::vector<collective::Shape>& shapes = by_kind_[kind].shapes;
  return known->second = std::all_of(shapes.begin(), shapes.end(), [&](const collective::Shape& shape) {
           if (dag_is_byte_independent(shape) && wire_bytes_per_transfer(shape, false) < 0) return false;
           const auto generator = collective::generator_of(shape, shape.members);
           return generator && member_shift % generator->least_width() == 0;
         });
}

bool Shift::maps_group(GroupId id) {
  const IdVector<GroupId, Group>& groups = layout_.groups();
  const Group& group = groups[id];
  const RankId first = shifted(group.ranks[0]);
  const GroupId image = layout_.group_of(first, group.role);
  if (image == RankLayout::kNoGroup || groups[image].kind != group.kind) return false;
  const std::uint32_t member_shift = layout_.member_of(first, group.role);
  const std::size_t members = group.ranks.size();
  if (groups[image].ranks.size() != members) return false;
  for (std::size_t i = 0; i < members; ++i)
    if (groups[image].ranks[(i + member_shift) % members] != shifted(group.ranks[i])) return false;
  images_.push_back({image, member_shift});
  return image == id ? may_rotate(group.kind, member_shift) : member_shift == 0;
}

bool Shift::maps_groups() {
  for (const GroupId group : layout_.groups().ids())
    if (!maps_group(group)) return false;
  canonical_ = IdVector<GroupId, GroupId>(images_.size(), RankLayout::kNoGroup);
  for (const GroupId group : layout_.groups().ids())
    for (GroupId other = group; canonical_[other] == RankLayout::kNoGroup; other = images_[other].group)
      canonical_[other] = group;
  return true;
}

bool Shift::maps_route(const Route& route, const Route& image) {
  if (route.size() != image.size()) return false;
  for (std::size_t hop = 0; hop < route.size(); ++hop) {
    const std::uint32_t link = route[hop], other = image[hop];
    if (to_[link] == other) continue;
    if (to_[link] != kNone || from_[other] != kNone) return false;
    if (!(network::spec_of(layout_.graph(), link) == network::spec_of(layout_.graph(), other))) return false;
    to_[link] = other, from_[other] = link;
  }
  return true;
}

bool Shift::maps_links() {
  to_.assign(links_, kNone), from_.assign(links_, kNone);
  for (const GroupId group : layout_.groups().ids()) {
    const auto& [image, member_shift] = images_[group];
    const auto members = static_cast<std::uint32_t>(layout_.groups()[group].ranks.size());
    for (const auto& dag : dags_of(group)) {
      const std::uint32_t connectivity = layout_.connectivity_number(*dag);
      const std::vector<Route>& routes = layout_.connections_of(group, connectivity)->routes;
      const std::vector<Route>& images = layout_.connections_of(image, connectivity)->routes;
      for (std::uint32_t pair = 0; pair < routes.size(); ++pair) {
        // Connections of collectives that may rotate lie in rows of one for each member (TransferGenerator).
        const std::uint32_t to =
            rotates(group) ? pair / members * members + (pair % members + member_shift) % members : pair;
        if (!maps_route(routes[pair], images[to])) return false;
      }
    }
  }
  return true;
}

/// Returns whether the group is the first of those merged with it on its links, and follows what precedes it there.
bool Shift::keeps_order_of_groups(GroupId group) {
  for (const auto& dag : dags_of(group))
    for (const std::uint32_t link : layout_.connections_of(group, layout_.connectivity_number(*dag))->links) {
      if (last_group_[link] == group) continue;
      if (last_group_[link] != RankLayout::kNoGroup && last_canonical_[link] >= canonical_[group]) return false;
      last_group_[link] = group, last_canonical_[link] = canonical_[group];
    }
  return true;
}

bool Shift::keeps_orders() {
  last_group_.assign(links_, RankLayout::kNoGroup), last_canonical_ = last_group_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> last(links_, {0, 0});  // (turn, the next merged pair)
  std::uint32_t turn = 0;
  for (const GroupId group : layout_.groups().ids()) {
    if (!keeps_order_of_groups(group)) return false;
    for (const auto& dag : dags_of(group)) {
      const collective::QuotientDag* quotient = rotates(group) ? &dags_.quotient_dag(dag, rotation(group)) : nullptr;
      const auto& routes = layout_.connections_of(group, layout_.connectivity_number(*dag))->routes;
      ++turn;
      for (std::uint32_t pair = 0; pair < routes.size(); ++pair) {
        const std::uint32_t merged = quotient == nullptr ? pair : quotient->representative[pair];
        for (const std::uint32_t link : routes[pair]) {
          auto& [last_turn, next] = last[link];
          if (last_turn == turn && merged < next) return false;
          last_turn = turn, next = merged + 1;
        }
      }
    }
  }
  return true;
}

PacketSymmetry Shift::symmetry() const {
  PacketSymmetry result;
  const std::uint32_t per_stage = layout_.ranks_per_stage();
  result.copies = per_stage / places_;
  for (const RankId rank : layout_.rank_ids()) {
    const std::uint32_t stage = layout_.stage_of(rank), place = rank.value() - stage * per_stage;
    result.ranks.representative_of.push_back(RepresentativeId(stage * places_ + place % places_));
    if (place < places_) result.ranks.representative_rank.push_back(rank), result.ranks.count.push_back(result.copies);
  }
  result.ranks.canonical = canonical_;
  for (const GroupId group : layout_.groups().ids()) result.ranks.rotation.push_back(rotation(group));
  result.representative_link.assign(links_, kNone);
  for (std::uint32_t link = 0; link < links_; ++link)
    for (std::uint32_t other = link; other != kNone && result.representative_link[other] == kNone; other = to_[other])
      result.representative_link[other] = link;
  return result;
}

}  // namespace

std::optional<PacketSymmetry> packet_symmetry_of(RankLayout& layout, const std::vector<ShapedOperations>& by_kind,
                                                 DagCache& dags) {
  const std::uint32_t per_stage = layout.ranks_per_stage();
  for (std::uint32_t places = 1; places <= per_stage / 2; ++places) {
    if (per_stage % places != 0) continue;
    Shift shift(layout, by_kind, dags, places);
    if (shift.is_symmetry()) return shift.symmetry();
  }
  return std::nullopt;
}

}  // namespace manyworlds::core::step
