// The composed network model. Collectives that overlap in time (until drained) and share links form a component.
// Components share no links, so each is simulated by itself. A component of one collective that all members enter at
// once is an isolated collective, with a key known beforehand; any other component is an episode. When a later
// collective shares links with existing components, they are continued as one component from their current state; exits
// already given remain valid.
#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "core/network/transports/registry.hpp"
#include "core/step/network/contention_tracker.hpp"
#include "core/step/network/isolated_collectives.hpp"

namespace manyworlds::core::step {
namespace {

struct Component {
  bool live = false;
  std::uint32_t generation = 0;
  Time origin = 0;
  std::vector<InstanceId> instances;                        // by number in the component
  std::vector<std::uint32_t> links;                         // links of the graph, by number in the component
  std::vector<std::pair<GroupId, std::uint32_t>> groups;    // (group, its number in the component), ascending
  std::map<const Connections*, std::uint32_t> connections;  // numbers in the component
  std::size_t exits_taken = 0;                              // exits given so far
  // Set only for an isolated collective (its links are the links of its connections):
  const IsolatedCollectives* isolated = nullptr;
  // Set only for an episode:
  std::shared_ptr<Episode> episode;
  Log log;

  void clear() {
    instances.clear(), links.clear(), groups.clear(), connections.clear(), log.clear();
    live = false, exits_taken = 0, isolated = nullptr, episode = nullptr;
  }
};

class ComposedNetwork final : public KeyedNetwork {
 public:
  ComposedNetwork(const CompiledStep& compiled, EpisodeCache& episodes, const IsolatedResults& results)
      : compiled_(compiled),
        episodes_(episodes),
        results_(results),
        contention_(compiled),
        isolated_(compiled.collective_ops().size()),
        per_packet_(network::needs_per_packet(compiled.transport())),
        number_in_component_(compiled.instances()),
        link_number_(compiled.layout().graph().links.size()) {
    check_per_packet_size(compiled);
    // They go against the data, on links that no connection lists.
    MANYWORLDS_CHECK(
        !network::transport_type(compiled.transport()).trims && compiled.transport().acks == network::Acks::coalesced,
        "a composed step of {} has acknowledgements that are packets", compiled.transport().kind);
  }

  void enter(Time at, const std::vector<Member>& members) override;
  Time next_exit(Time limit) override;
  void take_exits(Time at, std::vector<Member>& exits) override;
  void release_drained(Time at) override;
  network::PauseDependencies deadlock() const override {
    network::PauseDependencies all;
    for (const std::uint32_t index : running_episodes_) {
      const auto waits = network::relabeled(components_[index].episode->deadlock(), components_[index].links);
      all.insert(all.end(), waits.begin(), waits.end());
    }
    return all;
  }
  network::Counters counters() const override { return counters_; }
  Work work() const override { return work_; }
  std::vector<CollectiveOpId> missing() const override;
  UsageCounts isolated_usage() const override;
  const UsageCounts& episode_usage() const override { return episode_usage_; }

 private:
  struct Due {
    Time at;
    std::uint32_t component, generation;
    bool operator>(const Due& other) const { return at != other.at ? at > other.at : component > other.component; }
  };
  std::uint32_t open(Time origin);
  void release(std::uint32_t component);
  bool drained(Component& component, Time at);
  void begin_isolated(Time at, const ContentionGroup& contention_group);
  void schedule_isolated(std::uint32_t index);
  std::uint32_t convert_to_episode(std::uint32_t index);
  std::uint32_t merge(Time at, const std::vector<std::uint32_t>& components);
  std::uint32_t replay_together(const std::vector<std::uint32_t>& components);
  void absorb(Time at, std::uint32_t index, std::uint32_t other);
  void join(Time at, std::uint32_t index, const ContentionGroup& contention_group);
  LogEntry::JoiningCollective joining(Component& component, InstanceId instance);
  static std::pair<std::uint32_t, std::uint32_t> number_group(Component& component, GroupId group);
  std::pair<std::uint32_t, bool> number_of_link(Component& component, std::uint32_t link);
  void extend(Component& component, LogEntry entry, std::shared_ptr<Episode> absorbed = nullptr);
  void count(const CollectiveOp& collective_op);

  const CompiledStep& compiled_;
  EpisodeCache& episodes_;
  const IsolatedResults& results_;
  ContentionTracker contention_;
  IdVector<CollectiveOpId, IsolatedCollectives> isolated_;
  bool per_packet_;  // episodes take all links of the graph, under their own numbers
  IdVector<InstanceId, std::uint32_t> number_in_component_;  // its number in its component, if that is an episode
  std::vector<std::uint32_t> link_number_;  // by link: its number in the component that numbered it last
  std::vector<Component> components_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> unresolved_;                                 // isolated components without a result
  std::vector<std::uint32_t> running_episodes_;                           // components that are episodes
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_exits_;  // next exits of isolated components
  network::Counters counters_;
  UsageCounts episode_usage_;
  Work work_;
  std::set<sharing::Key> begun_;                // episodes of this step by key, with each log that they had
  std::vector<std::uint32_t> taking_episodes_;  // scratch of take_exits(): a copy of running_episodes_
};

std::uint32_t ComposedNetwork::open(Time origin) {
  std::uint32_t index = static_cast<std::uint32_t>(components_.size());
  if (free_.empty()) {
    components_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  components_[index].live = true;
  ++components_[index].generation;
  components_[index].origin = origin;
  return index;
}

void ComposedNetwork::release(std::uint32_t index) {
  Component& component = components_[index];
  if (component.isolated) {
    contention_.assign_links(contention_.links_of(component.instances[0]), kNoComponent);
  } else {
    contention_.assign_links(component.links, kNoComponent);
    std::erase(running_episodes_, index);
  }
  component.clear();
  free_.push_back(index);
}

/// If nothing of the component is left in the network at `at`, counts and releases it. Returns whether it did.
bool ComposedNetwork::drained(Component& component, Time at) {
  const auto index = static_cast<std::uint32_t>(&component - components_.data());
  if (component.isolated) {
    if (!component.isolated->result || component.origin + component.isolated->result->drained > at) return false;
    const CollectiveOpId collective_op = compiled_.collective_op_id(component.instances[0]);
    ++isolated_[collective_op].times;
    counters_ += component.isolated->result->counters * compiled_.collective_ops()[collective_op].groups;
  } else {
    component.episode->exit(component.exits_taken, at - component.origin);
    if (!component.episode->is_over(at - component.origin)) return false;
    UsageCount& used = episode_usage_[component.episode->key()];
    if (used.times == 0) used = {component.episode->text(), component.episode->last_exit(), 0};
    // Links that share traffic stand for equally many.
    const std::int64_t copies = compiled_.collective_op_of(component.instances[0]).copies();
    used.times += copies;
    counters_ += component.episode->counters() * copies;
  }
  release(index);
  return true;
}

void ComposedNetwork::enter(Time at, const std::vector<Member>& members) {
  const auto is_drained = [&](std::uint32_t component) { return drained(components_[component], at); };
  for (ContentionGroup& contention_group : contention_.contention_groups(members, is_drained)) {
    const bool isolated = contention_group.components.empty() && contention_group.instances.size() == 1;
    if (isolated &&
        contention_group.entries.size() == compiled_.collective_op_of(contention_group.instances[0]).dag->members) {
      begin_isolated(at, contention_group);
      continue;
    }
    std::uint32_t index = kNoComponent;
    if (contention_group.components.empty()) {
      index = open(at);
      running_episodes_.push_back(index);
    } else if (contention_group.components.size() == 1) {
      index = convert_to_episode(contention_group.components[0]);
    } else {
      for (std::uint32_t& component : contention_group.components) component = convert_to_episode(component);
      index = merge(at, contention_group.components);
    }
    join(at, index, contention_group);
  }
}

void ComposedNetwork::begin_isolated(Time at, const ContentionGroup& contention_group) {
  const std::uint32_t index = open(at);
  const InstanceId instance = contention_group.instances[0];
  Component& component = components_[index];
  component.isolated = &isolated_[compiled_.collective_op_id(instance)];
  component.instances.push_back(instance);
  contention_.assign_links(contention_.links_of(instance), index);
  contention_.place(instance, index);
  unresolved_.push_back(index);
}

void ComposedNetwork::schedule_isolated(std::uint32_t index) {
  const Component& component = components_[index];
  IsolatedCollectives& isolated = isolated_[compiled_.collective_op_id(component.instances[0])];
  if (!isolated.result) count(compiled_.collective_op_of(component.instances[0]));
  isolated.look_up(compiled_.collective_op_of(component.instances[0]), results_);
  due_exits_.push({component.origin + isolated.exits[0].first, index, component.generation});
}

UsageCounts ComposedNetwork::isolated_usage() const {
  return isolated_usage_of(compiled_, isolated_);
}

std::vector<CollectiveOpId> ComposedNetwork::missing() const {
  std::vector<CollectiveOpId> collective_ops;
  for (const std::uint32_t index : unresolved_)
    collective_ops.push_back(compiled_.collective_op_id(components_[index].instances[0]));
  return missing_results(compiled_, isolated_, results_, std::move(collective_ops));
}

/// Converts an isolated component that another collective joins into an episode, whose log begins with the common
/// entry.
std::uint32_t ComposedNetwork::convert_to_episode(std::uint32_t index) {
  Component& component = components_[index];
  if (!component.isolated) return index;
  const InstanceId instance = component.instances[0];
  component.isolated = nullptr;
  component.instances.clear();
  ++component.generation;  // its scheduled exits no longer count
  std::erase(unresolved_, index);
  running_episodes_.push_back(index);
  LogEntry entry;
  entry.joining.push_back(joining(component, instance));
  for (std::uint32_t member = 0; member < compiled_.collective_op_of(instance).dag->members; ++member)
    entry.entries.emplace_back(0, member);
  extend(component, std::move(entry));
  return index;
}

/// Returns the number of a link in a component, and whether the link is new there.
std::pair<std::uint32_t, bool> ComposedNetwork::number_of_link(Component& component, std::uint32_t link) {
  const std::uint32_t known = link_number_[link];
  if (known < component.links.size() && component.links[known] == link) return {known, false};
  link_number_[link] = static_cast<std::uint32_t>(component.links.size());
  component.links.push_back(link);
  return {link_number_[link], true};
}

LogEntry::JoiningCollective ComposedNetwork::joining(Component& component, InstanceId instance) {
  const CollectiveOp& collective_op = compiled_.collective_op_of(instance);
  LogEntry::JoiningCollective result{collective_op.shape, collective_op.dag, 0, 0, 0, {}, {}, {}};
  std::tie(result.group, result.place) = number_group(component, collective_op.group);
  const auto [connections, first] = component.connections.try_emplace(
      collective_op.connections.get(), static_cast<std::uint32_t>(component.connections.size()));
  result.connections = connections->second;
  if (first) result.routes = collective_op.connections->routes;
  if (per_packet_) {
    const network::Graph& graph = compiled_.layout().graph();
    result.order = instance.value();
    for (std::uint32_t link = 0; component.instances.empty() && link < graph.links.size(); ++link)
      result.links.push_back(network::spec_of(graph, link));
    for (const std::uint32_t link : contention_.links_of(instance)) number_of_link(component, link);
  }
  for (network::Route& route : result.routes)
    if (!per_packet_)
      for (std::uint32_t& link : route) {
        const auto [name, is_new] = number_of_link(component, link);
        if (is_new) result.links.push_back(network::spec_of(compiled_.layout().graph(), link));
        link = name;
      }
  contention_.place(instance, static_cast<std::uint32_t>(&component - components_.data()));
  number_in_component_[instance] = static_cast<std::uint32_t>(component.instances.size());
  component.instances.push_back(instance);
  return result;
}

/// Returns the number of a group in a component, and its place among the others if it is new there (TieOrder::add).
std::pair<std::uint32_t, std::uint32_t> ComposedNetwork::number_group(Component& component, GroupId group) {
  auto& groups = component.groups;
  const auto at = std::lower_bound(groups.begin(), groups.end(), std::pair{group, std::uint32_t{0}});
  if (at != groups.end() && at->first == group) return {at->second, 0};
  const std::pair result{static_cast<std::uint32_t>(groups.size()), static_cast<std::uint32_t>(at - groups.begin())};
  groups.insert(at, {group, result.first});
  return result;
}

/// Adds an entry to the log of a component, in which the instances that join are the last.
void ComposedNetwork::extend(Component& component, LogEntry entry, std::shared_ptr<Episode> absorbed) {
  const std::size_t joined = entry.joining.size();
  component.log.push_back(std::make_shared<const LogEntry>(std::move(entry)));
  component.episode = episodes_.extend(std::move(component.episode), component.log, std::move(absorbed));
  if (begun_.insert(component.episode->key()).second)
    for (std::size_t i = component.instances.size() - joined; i < component.instances.size(); ++i)
      count(compiled_.collective_op_of(component.instances[i]));
}

/// Counts one of an operation's equal groups among what is simulated.
void ComposedNetwork::count(const CollectiveOp& collective_op) {
  work_.link_hops += collective_op.link_hops / collective_op.groups;
  work_.transfers += collective_op.transfers / collective_op.groups;
}

void ComposedNetwork::join(Time at, std::uint32_t index, const ContentionGroup& contention_group) {
  Component& component = components_[index];
  LogEntry entry;
  entry.at = at - component.origin;
  const std::size_t links = component.links.size();
  for (const InstanceId instance : contention_group.instances) entry.joining.push_back(joining(component, instance));
  contention_.assign_links({component.links.data() + links, component.links.size() - links}, index);
  for (const Member& member : contention_group.entries)
    entry.entries.emplace_back(number_in_component_[member.instance], member.member);
  extend(component, std::move(entry));
  MANYWORLDS_CHECK(component.episode->exit(component.exits_taken, at - component.origin) == nullptr,
                   "what joined at {} changed an exit before it", at);
}

/// Merges the components that a new collective joins into one: the first to begin absorbs the others.
std::uint32_t ComposedNetwork::merge(Time at, const std::vector<std::uint32_t>& components) {
  if (per_packet_) return replay_together(components);
  const std::uint32_t index = *std::min_element(
      components.begin(), components.end(),
      [&](std::uint32_t a, std::uint32_t b) { return components_[a].origin < components_[b].origin; });
  for (const std::uint32_t other : components)
    if (other != index) absorb(at, index, other);
  return index;
}

/// Makes `other` a part of the component `index`; what both have reached goes on there.
void ComposedNetwork::absorb(Time at, std::uint32_t index, std::uint32_t other) {
  std::erase(running_episodes_, other);
  free_.push_back(other);
  Component absorbed = std::move(components_[other]);
  components_[other].clear();
  Component& component = components_[index];
  LogEntry::Absorbed how{std::move(absorbed.log), absorbed.episode->key(), absorbed.origin - component.origin, {}};
  how.groups.resize(absorbed.groups.size());
  std::sort(absorbed.groups.begin(), absorbed.groups.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto& [group, number] : absorbed.groups) how.groups[number] = number_group(component, group);
  for (const InstanceId instance : absorbed.instances) {
    contention_.place(instance, index);
    number_in_component_[instance] = static_cast<std::uint32_t>(component.instances.size());
    component.instances.push_back(instance);
  }
  contention_.assign_links(absorbed.links, index);
  for (const std::uint32_t link : absorbed.links) number_of_link(component, link);
  const auto connections = static_cast<std::uint32_t>(component.connections.size());
  for (const auto& [of, number] : absorbed.connections)
    MANYWORLDS_CHECK(component.connections.emplace(of, connections + number).second,
                     "components of {} and {} collectives share connections", component.instances.size(),
                     absorbed.instances.size());
  component.exits_taken += absorbed.exits_taken;
  LogEntry entry;
  entry.at = at - component.origin;
  entry.absorbed = std::make_shared<const LogEntry::Absorbed>(std::move(how));
  extend(component, std::move(entry), std::move(absorbed.episode));
}

/// Merges components of the per-packet engine: their logs are merged by time and replayed.
std::uint32_t ComposedNetwork::replay_together(const std::vector<std::uint32_t>& components) {
  Time origin = kNever;
  for (const std::uint32_t index : components) origin = std::min(origin, components_[index].origin);
  std::vector<Component> merged;
  struct Event {
    Time at;
    std::size_t component;
    std::size_t entry;
    auto operator<=>(const Event&) const = default;
  };
  std::vector<Event> events;
  for (const std::uint32_t index : components) {
    const Component& component = merged.emplace_back(components_[index]);
    for (std::size_t i = 0; i < component.log.size(); ++i)
      events.push_back({component.origin + component.log[i]->at, merged.size() - 1, i});
    release(index);
  }
  std::sort(events.begin(), events.end());
  const std::uint32_t index = open(origin);
  running_episodes_.push_back(index);
  std::vector<std::uint32_t> joined_so_far(merged.size(), 0);  // collectives of each old component so far
  for (std::size_t begin = 0, end = 0; begin < events.size(); begin = end) {
    LogEntry entry;
    entry.at = events[begin].at - origin;
    for (end = begin; end < events.size() && events[end].at == events[begin].at; ++end) {
      const Component& from = merged[events[end].component];
      const LogEntry& part = *from.log[events[end].entry];
      for (std::size_t i = 0; i < part.joining.size(); ++i)
        entry.joining.push_back(joining(components_[index], from.instances[joined_so_far[events[end].component]++]));
      for (const auto& [collective, member] : part.entries)
        entry.entries.emplace_back(number_in_component_[from.instances[collective]], member);
    }
    extend(components_[index], std::move(entry));
  }
  for (const Component& component : merged) components_[index].exits_taken += component.exits_taken;
  contention_.assign_links(components_[index].links, index);
  return index;
}

Time ComposedNetwork::next_exit(Time limit) {
  for (const std::uint32_t index : unresolved_) schedule_isolated(index);
  unresolved_.clear();
  while (!due_exits_.empty() && components_[due_exits_.top().component].generation != due_exits_.top().generation)
    due_exits_.pop();
  if (!per_packet_)
    for (const std::uint32_t index : running_episodes_) components_[index].episode->begin();
  Time first = due_exits_.empty() || due_exits_.top().at > limit ? kNever : due_exits_.top().at;
  for (const std::uint32_t index : running_episodes_) {
    Component& component = components_[index];
    const Time until = std::min(first, limit);
    const network::Exit* exit =
        component.episode->exit(component.exits_taken, until == kNever ? kNever : until - component.origin);
    if (exit != nullptr) first = std::min(first, component.origin + exit->at);
  }
  return first;
}

void ComposedNetwork::take_exits(Time at, std::vector<Member>& exits) {
  while (!due_exits_.empty() && due_exits_.top().at == at) {
    const Due due = due_exits_.top();
    due_exits_.pop();
    Component& component = components_[due.component];
    if (component.generation != due.generation) continue;
    const auto& leaving = component.isolated->exits;
    for (; component.exits_taken < leaving.size() && component.origin + leaving[component.exits_taken].first == at;
         ++component.exits_taken)
      exits.push_back({component.instances[0], leaving[component.exits_taken].second});
    if (component.exits_taken < leaving.size())
      due_exits_.push({component.origin + leaving[component.exits_taken].first, due.component, due.generation});
    else
      drained(component, at);
  }
  taking_episodes_ = running_episodes_;
  for (const std::uint32_t index : taking_episodes_) {
    Component& component = components_[index];
    const network::Exit* exit = component.episode->exit(component.exits_taken, at - component.origin);
    for (; exit != nullptr; exit = component.episode->exit(++component.exits_taken, at - component.origin)) {
      MANYWORLDS_CHECK(component.origin + exit->at == at, "an exit at {} was passed over by {}",
                       component.origin + exit->at, at);
      exits.push_back({component.instances[exit->collective], exit->member});
    }
    drained(component, at);
  }
}

void ComposedNetwork::release_drained(Time at) {
  for (std::uint32_t index = 0; index < components_.size(); ++index) {
    Component& component = components_[index];
    if (!component.live) continue;
    const Time end = component.isolated ? component.origin + component.isolated->result->drained : kNever;
    MANYWORLDS_CHECK(drained(component, std::max(at, end)), "a component of {} collectives outlives the step",
                     component.instances.size());
  }
}

}  // namespace

std::unique_ptr<KeyedNetwork> make_composed(const CompiledStep& compiled, EpisodeCache& episodes,
                                            const IsolatedResults& results) {
  return std::make_unique<ComposedNetwork>(compiled, episodes, results);
}

}  // namespace manyworlds::core::step
