#include "core/step/network/contention_tracker.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/sharing/union_find.hpp"

namespace manyworlds::core::step {
ContentionTracker::ContentionTracker(const CompiledStep& compiled)
    : compiled_(compiled),
      instances_(compiled.instances()),
      component_of_link_(compiled.layout().graph().links.size(), kNoComponent),
      first_on_link_(component_of_link_.size(), kNone) {}

const ContentionTracker::Arrivals& ContentionTracker::arrivals(const std::vector<Member>& members) {
  Arrivals& result = arrivals_;
  result.newly_active.clear(), result.continuing.clear();
  for (const Member& member : members) {
    Instance& instance = instances_[member.instance];
    if (instance.component != kNoComponent) {
      result.continuing.push_back(member);
      continue;
    }
    if (instance.waiting == kNone) instance.waiting = open_list();
    std::vector<std::uint32_t>& waiting = waiting_[instance.waiting];
    waiting.push_back(member.member);
    // A transfer begins when both of its ends have entered. Switches count as ends, and a member that stands for
    // several is both.
    const CollectiveOp& collective_op = compiled_.collective_op_of(member.instance);
    const std::size_t needed = collective_op.dag->switches.empty() && collective_op.ranks_per_member() == 1 ? 2 : 1;
    if (waiting.size() == needed) result.newly_active.push_back(member.instance);
  }
  return result;
}

const std::vector<std::uint32_t>& ContentionTracker::links_of(InstanceId instance) {
  const Connections& connections = *compiled_.collective_op_of(instance).connections;
  if (connections.spreads.empty()) return connections.links;
  const auto [known, is_new] = spread_links_.try_emplace(&connections);
  std::vector<std::uint32_t>& links = known->second;
  if (!is_new) return links;
  const auto add = [&](const network::SpreadHop& hop) {
    for (const network::LinkShare& one : hop) links.push_back(one.link);
  };
  for (const network::Spread& spread : connections.spreads) {
    add(spread.first), add(spread.last);
    for (const network::SpreadHop& hop : compiled_.layout().spreads()->middle(spread.middle)) add(hop);
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

std::uint32_t ContentionTracker::open_list() {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(waiting_.size()));
    waiting_.emplace_back();
  }
  const std::uint32_t list = free_.back();
  free_.pop_back();
  return list;
}

ContentionGroup& ContentionTracker::open_group() {
  if (group_count_ == contention_groups_.size()) contention_groups_.emplace_back();
  ContentionGroup& result = contention_groups_[group_count_++];
  result.instances.clear(), result.components.clear(), result.entries.clear();
  return result;
}

std::span<ContentionGroup> ContentionTracker::contention_groups(const std::vector<Member>& members,
                                                                const Drained& drained) {
  const Arrivals& arrived = arrivals(members);
  sharing::UnionFind union_find(
      arrived.newly_active.size());  // newly active instances, then components in order of `touched`
  std::vector<std::uint32_t> touched;
  std::map<std::uint32_t, std::uint32_t> node_of_component;
  const auto node_of = [&](std::uint32_t component) {
    const auto [slot, is_new] = node_of_component.try_emplace(component, 0);
    if (is_new) slot->second = union_find.add(), touched.push_back(component);
    return slot->second;
  };
  for (std::uint32_t i = 0; i < arrived.newly_active.size(); ++i)
    for (const std::uint32_t link : links_of(arrived.newly_active[i])) {
      if (component_of_link_[link] != kNoComponent && !drained(component_of_link_[link]))
        union_find.join(node_of(component_of_link_[link]), i);
      if (first_on_link_[link] != kNone)
        union_find.join(first_on_link_[link], i);
      else
        first_on_link_[link] = i;
    }
  for (const InstanceId instance : arrived.newly_active)
    for (const std::uint32_t link : links_of(instance)) first_on_link_[link] = kNone;
  for (const Member& member : arrived.continuing) node_of(component_of(member.instance));

  group_count_ = 0;
  group_of_root_.assign(union_find.size(), kNone);
  const auto contention_group = [&](std::uint32_t node) -> ContentionGroup& {
    std::uint32_t& slot = group_of_root_[union_find.root(node)];
    if (slot != kNone) return contention_groups_[slot];
    slot = static_cast<std::uint32_t>(group_count_);
    return open_group();
  };
  for (std::uint32_t i = 0; i < arrived.newly_active.size(); ++i) {
    ContentionGroup& into = contention_group(i);
    Instance& instance = instances_[arrived.newly_active[i]];
    into.instances.push_back(arrived.newly_active[i]);
    for (const std::uint32_t member : waiting_[instance.waiting])
      into.entries.push_back({arrived.newly_active[i], member});
    waiting_[instance.waiting].clear();
    free_.push_back(std::exchange(instance.waiting, kNone));
  }
  for (const std::uint32_t component : touched)
    contention_group(node_of_component[component]).components.push_back(component);
  for (const Member& member : arrived.continuing)
    contention_group(node_of_component[component_of(member.instance)]).entries.push_back(member);
  const std::span<ContentionGroup> all(contention_groups_.data(), group_count_);
  for (ContentionGroup& result : all) {
    std::sort(result.instances.begin(), result.instances.end());
    std::sort(result.entries.begin(), result.entries.end());
    std::sort(result.components.begin(), result.components.end());
  }
  return all;
}

}  // namespace manyworlds::core::step
