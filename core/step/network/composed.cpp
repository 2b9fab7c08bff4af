// The composed side. Collectives that overlap in time (until drained) and share links form a component; components
// share nothing, so each runs by itself. One collective, entered by all at once and met by nobody, is an isolated one
// with a key known beforehand; anything else is an episode. What is met later goes on as part of the component that
// met it, from the state it had then: exits already given stand.
#include <algorithm>
#include <map>
#include <queue>

#include "core/step/network/alone.hpp"
#include "core/step/network/gathering.hpp"

namespace manyworlds::core::step {
namespace {

struct Component {
  bool live = false;
  std::uint32_t life = 0;
  Time origin = 0;
  std::vector<std::uint32_t> instances;                         // by number in the component
  std::vector<std::uint32_t> links;                             // of the graph, by number in the component
  std::vector<std::pair<std::uint32_t, std::uint32_t>> groups;  // of the world, ascending, and their numbers in it
  std::map<const Connections*, std::uint32_t> connections;      // their numbers in it
  std::size_t taken = 0;                                        // exits given so far
  // Isolated (its links are those of its connections):
  const Alone* alone = nullptr;
  // Episode:
  std::shared_ptr<Episode> episode;
  Log log;

  void clear() {
    instances.clear(), links.clear(), groups.clear(), connections.clear(), log.clear();
    live = false, taken = 0, alone = nullptr, episode = nullptr;
  }
};

class ComposedSide final : public Composed {
 public:
  ComposedSide(const World& world, Episodes& episodes, const IsolatedResults& results)
      : world_(world),
        episodes_(episodes),
        results_(results),
        gathering_(world),
        alone_(world.uses().size()),
        number_(world.instances()),
        name_(world.layout().graph().links.size()) {}

  void enter(Time at, const std::vector<Member>& members) override;
  Time next(Time limit) override;
  void take(Time at, std::vector<Member>& exits) override;
  void close(Time at) override;
  network::PauseWaits standstill() const override {
    network::PauseWaits all;
    for (const std::uint32_t index : running_) {
      const auto waits = network::renamed(components_[index].episode->standstill(), components_[index].links);
      all.insert(all.end(), waits.begin(), waits.end());
    }
    return all;
  }
  network::Counters counters() const override { return counters_; }
  std::vector<std::uint32_t> missing() const override;
  Usages isolated_used() const override;
  const Usages& episodes_used() const override { return episodes_used_; }

 private:
  struct Due {
    Time at;
    std::uint32_t component, life;
    bool operator>(const Due& other) const { return at != other.at ? at > other.at : component > other.component; }
  };
  std::uint32_t open(Time origin);
  void release(std::uint32_t component);
  bool drained(Component& component, Time at);
  void begin_isolated(Time at, const Meeting& meeting);
  void schedule_isolated(std::uint32_t index);
  std::uint32_t as_episode(std::uint32_t index);
  std::uint32_t merge(const std::vector<std::uint32_t>& components);
  void join(Time at, std::uint32_t index, const Meeting& meeting);
  LogEntry::Joining joining(Component& component, std::uint32_t instance);
  void number_group(Component& component, std::uint32_t group, LogEntry::Joining& joining);
  std::pair<std::uint32_t, bool> name_of(Component& component, std::uint32_t link);
  void extend(Component& component, LogEntry entry);

  const World& world_;
  Episodes& episodes_;
  const IsolatedResults& results_;
  Gathering gathering_;
  std::vector<Alone> alone_;           // by use
  std::vector<std::uint32_t> number_;  // by instance: in its component, if that is an episode
  std::vector<std::uint32_t> name_;    // by link: its number in the component that named it last
  std::vector<Component> components_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> unresolved_;                           // isolated components without a result
  std::vector<std::uint32_t> running_;                              // components that are episodes
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;  // next exits of isolated components
  network::Counters counters_;
  Usages episodes_used_;
  std::vector<std::uint32_t> taking_;  // running_, while exits are taken
};

std::uint32_t ComposedSide::open(Time origin) {
  std::uint32_t index = static_cast<std::uint32_t>(components_.size());
  if (free_.empty()) {
    components_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  components_[index].live = true;
  ++components_[index].life;
  components_[index].origin = origin;
  return index;
}

void ComposedSide::release(std::uint32_t index) {
  Component& component = components_[index];
  if (component.alone) {
    gathering_.occupy(world_.use_of(component.instances[0]).connections->links, kNoComponent);
  } else {
    gathering_.occupy(component.links, kNoComponent);
    std::erase(running_, index);
  }
  component.clear();
  free_.push_back(index);
}

/// True if nothing of it is left at `at`; it is then counted and gone.
bool ComposedSide::drained(Component& component, Time at) {
  const auto index = static_cast<std::uint32_t>(&component - components_.data());
  if (component.alone) {
    if (!component.alone->result || component.origin + component.alone->result->drained > at) return false;
    ++alone_[world_.use_number(component.instances[0])].times;
    counters_ += component.alone->result->counters;
  } else {
    component.episode->exit(component.taken, at - component.origin);
    if (!component.episode->over(at - component.origin)) return false;
    Usage& used = episodes_used_[component.episode->key()];
    if (used.times++ == 0) used = {component.episode->text(), component.episode->last_exit(), 1};
    counters_ += component.episode->counters();
  }
  release(index);
  return true;
}

void ComposedSide::enter(Time at, const std::vector<Member>& members) {
  const auto gone = [&](std::uint32_t component) { return drained(components_[component], at); };
  for (Meeting& meeting : gathering_.gather(members, gone)) {
    const bool alone = meeting.components.empty() && meeting.instances.size() == 1;
    if (alone && meeting.entries.size() == world_.use_of(meeting.instances[0]).shape.members) {
      begin_isolated(at, meeting);
      continue;
    }
    std::uint32_t index = kNoComponent;
    if (meeting.components.empty()) {
      index = open(at);
      running_.push_back(index);
    } else if (meeting.components.size() == 1) {
      index = as_episode(meeting.components[0]);
    } else {
      for (std::uint32_t& component : meeting.components) component = as_episode(component);
      index = merge(meeting.components);
    }
    join(at, index, meeting);
  }
}

void ComposedSide::begin_isolated(Time at, const Meeting& meeting) {
  const std::uint32_t index = open(at), instance = meeting.instances[0];
  Component& component = components_[index];
  component.alone = &alone_[world_.use_number(instance)];
  component.instances.push_back(instance);
  gathering_.occupy(world_.use_of(instance).connections->links, index);
  gathering_.place(instance, index);
  unresolved_.push_back(index);
}

void ComposedSide::schedule_isolated(std::uint32_t index) {
  const Component& component = components_[index];
  Alone& alone = alone_[world_.use_number(component.instances[0])];
  alone.look_up(world_.use_of(component.instances[0]), results_);
  due_.push({component.origin + alone.exits[0].first, index, component.life});
}

Usages ComposedSide::isolated_used() const {
  Usages all;
  for (std::size_t use = 0; use < alone_.size(); ++use) {
    if (alone_[use].times == 0) continue;
    Usage& used = all[world_.uses()[use].key];
    used = {world_.uses()[use].shape.text(), alone_[use].exits.back().first, used.times + alone_[use].times};
  }
  return all;
}

std::vector<std::uint32_t> ComposedSide::missing() const {
  std::vector<std::uint32_t> uses;
  for (const std::uint32_t index : unresolved_) uses.push_back(world_.use_number(components_[index].instances[0]));
  return lacking(world_, alone_, results_, std::move(uses));
}

/// An isolated component that is met becomes an episode whose log begins with its common entry.
std::uint32_t ComposedSide::as_episode(std::uint32_t index) {
  Component& component = components_[index];
  if (!component.alone) return index;
  const std::uint32_t instance = component.instances[0];
  component.alone = nullptr;
  component.instances.clear();
  ++component.life;  // its scheduled exits no longer count
  std::erase(unresolved_, index);
  running_.push_back(index);
  LogEntry entry;
  entry.joining.push_back(joining(component, instance));
  for (std::uint32_t member = 0; member < world_.use_of(instance).shape.members; ++member)
    entry.entries.emplace_back(0, member);
  extend(component, std::move(entry));
  return index;
}

/// The number of a link in its component, and whether it is new there.
std::pair<std::uint32_t, bool> ComposedSide::name_of(Component& component, std::uint32_t link) {
  const std::uint32_t known = name_[link];
  if (known < component.links.size() && component.links[known] == link) return {known, false};
  name_[link] = static_cast<std::uint32_t>(component.links.size());
  component.links.push_back(link);
  return {name_[link], true};
}

LogEntry::Joining ComposedSide::joining(Component& component, std::uint32_t instance) {
  const Use& use = world_.use_of(instance);
  LogEntry::Joining made{use.shape, use.dag, 0, 0, 0, {}, {}};
  number_group(component, use.group, made);
  const auto [connections, first] = component.connections.try_emplace(
      use.connections.get(), static_cast<std::uint32_t>(component.connections.size()));
  made.connections = connections->second;
  if (first) made.routes = use.connections->routes;
  for (network::Route& route : made.routes)
    for (std::uint32_t& link : route) {
      const auto [name, is_new] = name_of(component, link);
      if (is_new) made.links.push_back(network::spec_of(world_.layout().graph(), link));
      link = name;
    }
  gathering_.place(instance, static_cast<std::uint32_t>(&component - components_.data()));
  number_[instance] = static_cast<std::uint32_t>(component.instances.size());
  component.instances.push_back(instance);
  return made;
}

void ComposedSide::number_group(Component& component, std::uint32_t group, LogEntry::Joining& joining) {
  auto& groups = component.groups;
  const auto at = std::lower_bound(groups.begin(), groups.end(), std::pair{group, std::uint32_t{0}});
  const bool known = at != groups.end() && at->first == group;
  joining.group = known ? at->second : static_cast<std::uint32_t>(groups.size());
  if (known) return;
  joining.place = static_cast<std::uint32_t>(at - groups.begin());
  groups.insert(at, {group, joining.group});
}

void ComposedSide::extend(Component& component, LogEntry entry) {
  component.log.push_back(std::make_shared<const LogEntry>(std::move(entry)));
  component.episode = episodes_.extend(std::move(component.episode), component.log);
}

void ComposedSide::join(Time at, std::uint32_t index, const Meeting& meeting) {
  Component& component = components_[index];
  LogEntry entry;
  entry.at = at - component.origin;
  const std::size_t links = component.links.size();
  for (const std::uint32_t instance : meeting.instances) entry.joining.push_back(joining(component, instance));
  gathering_.occupy({component.links.data() + links, component.links.size() - links}, index);
  for (const Member& member : meeting.entries) entry.entries.emplace_back(number_[member.instance], member.member);
  extend(component, std::move(entry));
  MANYWORLDS_CHECK(component.episode->exit(component.taken, at - component.origin) == nullptr,
                   "what joined at {} changed an exit before it", at);
}

/// Components that a newcomer joins go on as one: their logs are merged by time and played again.
std::uint32_t ComposedSide::merge(const std::vector<std::uint32_t>& components) {
  Time origin = kNever;
  for (const std::uint32_t index : components) origin = std::min(origin, components_[index].origin);
  std::vector<Component> old;
  struct Event {
    Time at;
    std::size_t component;
    std::size_t entry;
    auto operator<=>(const Event&) const = default;
  };
  std::vector<Event> events;
  for (const std::uint32_t index : components) {
    const Component& component = old.emplace_back(components_[index]);
    for (std::size_t i = 0; i < component.log.size(); ++i)
      events.push_back({component.origin + component.log[i]->at, old.size() - 1, i});
    release(index);
  }
  std::sort(events.begin(), events.end());
  const std::uint32_t index = open(origin);
  running_.push_back(index);
  std::vector<std::uint32_t> joined(old.size(), 0);  // collectives of each old component so far
  for (std::size_t begin = 0, end = 0; begin < events.size(); begin = end) {
    LogEntry entry;
    entry.at = events[begin].at - origin;
    for (end = begin; end < events.size() && events[end].at == events[begin].at; ++end) {
      const Component& from = old[events[end].component];
      const LogEntry& part = *from.log[events[end].entry];
      for (std::size_t i = 0; i < part.joining.size(); ++i)
        entry.joining.push_back(joining(components_[index], from.instances[joined[events[end].component]++]));
      for (const auto& [collective, member] : part.entries)
        entry.entries.emplace_back(number_[from.instances[collective]], member);
    }
    extend(components_[index], std::move(entry));
  }
  for (const Component& component : old) components_[index].taken += component.taken;
  gathering_.occupy(components_[index].links, index);
  return index;
}

Time ComposedSide::next(Time limit) {
  for (const std::uint32_t index : unresolved_) schedule_isolated(index);
  unresolved_.clear();
  while (!due_.empty() && components_[due_.top().component].life != due_.top().life) due_.pop();
  Time first = due_.empty() || due_.top().at > limit ? kNever : due_.top().at;
  for (const std::uint32_t index : running_) {
    Component& component = components_[index];
    const Time until = std::min(first, limit);
    const network::Exit* exit =
        component.episode->exit(component.taken, until == kNever ? kNever : until - component.origin);
    if (exit != nullptr) first = std::min(first, component.origin + exit->at);
  }
  return first;
}

void ComposedSide::take(Time at, std::vector<Member>& exits) {
  while (!due_.empty() && due_.top().at == at) {
    const Due due = due_.top();
    due_.pop();
    Component& component = components_[due.component];
    if (component.life != due.life) continue;
    const auto& leaving = component.alone->exits;
    for (; component.taken < leaving.size() && component.origin + leaving[component.taken].first == at;
         ++component.taken)
      exits.push_back({component.instances[0], leaving[component.taken].second});
    if (component.taken < leaving.size())
      due_.push({component.origin + leaving[component.taken].first, due.component, due.life});
    else
      drained(component, at);
  }
  taking_ = running_;
  for (const std::uint32_t index : taking_) {
    Component& component = components_[index];
    const network::Exit* exit = component.episode->exit(component.taken, at - component.origin);
    for (; exit != nullptr; exit = component.episode->exit(++component.taken, at - component.origin)) {
      MANYWORLDS_CHECK(component.origin + exit->at == at, "an exit at {} was passed over by {}",
                       component.origin + exit->at, at);
      exits.push_back({component.instances[exit->collective], exit->member});
    }
    drained(component, at);
  }
}

void ComposedSide::close(Time at) {
  for (std::uint32_t index = 0; index < components_.size(); ++index) {
    Component& component = components_[index];
    if (!component.live) continue;
    const Time end = component.alone ? component.origin + component.alone->result->drained : kNever;
    MANYWORLDS_CHECK(drained(component, std::max(at, end)), "a component of {} collectives outlives the step",
                     component.instances.size());
  }
}

}  // namespace

std::unique_ptr<Composed> make_composed(const World& world, Episodes& episodes, const IsolatedResults& results) {
  return std::make_unique<ComposedSide>(world, episodes, results);
}

}  // namespace manyworlds::core::step
