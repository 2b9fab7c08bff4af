#include "core/step/network/gathering.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/sharing/union_find.hpp"

namespace manyworlds::core::step {
Gathering::Gathering(const World& world)
    : world_(world),
      instances_(world.instances()),
      owner_(world.layout().graph().links.size(), kNoComponent),
      first_at_(owner_.size(), kNobody) {}

const Gathering::Arrivals& Gathering::arrivals(const std::vector<Member>& members) {
  Arrivals& made = arrived_;
  made.fresh.clear(), made.going_on.clear();
  for (const Member& member : members) {
    Instance& instance = instances_[member.instance];
    if (instance.component != kNoComponent) {
      made.going_on.push_back(member);
      continue;
    }
    if (instance.waiting == kNobody) instance.waiting = open_list();
    std::vector<std::uint32_t>& waiting = waiting_[instance.waiting];
    waiting.push_back(member.member);
    const std::size_t needed = world_.use_of(member.instance).dag->switches.empty() ? 2 : 1;
    if (waiting.size() == needed) made.fresh.push_back(member.instance);
  }
  return made;
}

std::uint32_t Gathering::open_list() {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(waiting_.size()));
    waiting_.emplace_back();
  }
  const std::uint32_t list = free_.back();
  free_.pop_back();
  return list;
}

Meeting& Gathering::open_meeting() {
  if (met_ == meetings_.size()) meetings_.emplace_back();
  Meeting& made = meetings_[met_++];
  made.instances.clear(), made.components.clear(), made.entries.clear();
  return made;
}

std::span<Meeting> Gathering::gather(const std::vector<Member>& members, const Drained& drained) {
  const Arrivals& arrived = arrivals(members);
  sharing::UnionFind together(arrived.fresh.size());  // fresh instances, then components as they are touched
  std::vector<std::uint32_t> touched;
  std::map<std::uint32_t, std::uint32_t> node_of_component;
  const auto node_of = [&](std::uint32_t component) {
    const auto [slot, is_new] = node_of_component.try_emplace(component, 0);
    if (is_new) slot->second = together.add(), touched.push_back(component);
    return slot->second;
  };
  for (std::uint32_t i = 0; i < arrived.fresh.size(); ++i)
    for (const std::uint32_t link : world_.use_of(arrived.fresh[i]).connections->links) {
      if (owner_[link] != kNoComponent && !drained(owner_[link])) together.join(node_of(owner_[link]), i);
      if (first_at_[link] != kNobody)
        together.join(first_at_[link], i);
      else
        first_at_[link] = i;
    }
  for (const std::uint32_t instance : arrived.fresh)
    for (const std::uint32_t link : world_.use_of(instance).connections->links) first_at_[link] = kNobody;
  for (const Member& member : arrived.going_on) node_of(component_of(member.instance));

  met_ = 0;
  meeting_of_.assign(together.size(), kNobody);
  const auto meeting = [&](std::uint32_t node) -> Meeting& {
    std::uint32_t& slot = meeting_of_[together.root(node)];
    if (slot != kNobody) return meetings_[slot];
    slot = static_cast<std::uint32_t>(met_);
    return open_meeting();
  };
  for (std::uint32_t i = 0; i < arrived.fresh.size(); ++i) {
    Meeting& into = meeting(i);
    Instance& instance = instances_[arrived.fresh[i]];
    into.instances.push_back(arrived.fresh[i]);
    for (const std::uint32_t member : waiting_[instance.waiting]) into.entries.push_back({arrived.fresh[i], member});
    waiting_[instance.waiting].clear();
    free_.push_back(std::exchange(instance.waiting, kNobody));
  }
  for (const std::uint32_t component : touched) meeting(node_of_component[component]).components.push_back(component);
  for (const Member& member : arrived.going_on)
    meeting(node_of_component[component_of(member.instance)]).entries.push_back(member);
  const std::span<Meeting> all(meetings_.data(), met_);
  for (Meeting& made : all) {
    std::sort(made.instances.begin(), made.instances.end());
    std::sort(made.entries.begin(), made.entries.end());
    std::sort(made.components.begin(), made.components.end());
  }
  return all;
}

}  // namespace manyworlds::core::step
