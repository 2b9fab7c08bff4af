// Decomposed flows: connected components of flows that share links. A component is a canonical state and the flows and
// links behind its numbers; between two instants at which a flow starts or completes, its future is a pure function of
// that state, which the cache computes only once for equal components anywhere in the fabric, at any time.
//
// An outcome is needed only when its component may be the next to complete, which is not before the least time that its
// flows take. Flows that join before that make it needless, and until then helpers may simulate it, while others are.
//
// Caching has a cost: a state is saved, looked up and loaded at each completion. A component that keeps paying it
// without cache hits is moved to the joint simulation (joint_simulation.hpp), which simulates without caching for a
// while, and for longer each time.
#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "core/base/error.hpp"
#include "core/network/flows/flow_component.hpp"
#include "core/network/flows/joint_simulation.hpp"
#include "core/sharing/union_find.hpp"

namespace manyworlds::core::network {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// Costs in nanoseconds, measured on the development machine; only their ratios matter.
constexpr std::int64_t kLinkHopCost = 55;
constexpr std::int64_t kHitCost = 500;                            // a cache hit
constexpr std::int64_t kMissCost = 6'000, kMissCostPerWord = 40;  // a miss, and per word: load, save, hash, insert
constexpr std::int64_t kJoinCost = 3'000, kJoinCostPerWord = 28;  // flows start in a component, and per word
constexpr std::int64_t kMissShare = 20;           // caching may cost 1/kMissShare of the simulation it caches
constexpr std::int64_t kMaxDebt = 500'000;        // the cost beyond savings after which a component gives up caching
constexpr std::int64_t kMaxBalance = 20'000'000;  // maximum savings carried over to pay for later costs
constexpr std::int64_t kMinHopsPerWord = 4;  // link-hops per state word before the joint simulation is decomposed again
constexpr std::uint32_t kMaxDoublings = 6;   // maximum doublings of that, one per decomposition without hits

/// Flows by connected components, with a cache of their results.
class DecomposedFlows final : public Flows {
 public:
  explicit DecomposedFlows(ComponentCache& cache) : cache_(&cache), joint_(cache) {}

  std::uint32_t add_link(const LinkSpec& spec) override {
    owner_.push_back(kNone);
    return routes_.add_link(spec);
  }
  std::uint32_t add_route(const Route& route) override { return routes_.add(route); }

  void set_tie_order(const std::vector<std::uint32_t>& tie_order) override {
    tie_order_ = tie_order;
    joint_.rank([&](FlowId id) { return order(id); });
  }
  void add_tie_order(std::uint32_t rank) override { tie_order_.push_back(rank); }

  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    const std::uint32_t component = open_component();
    for (const std::uint32_t link : routes_.links_of(route)) {
      if (owner_[link] == kNone)
        owner_[link] = component;
      else
        group_.join(owner_[link], component);
    }
    starts_.push_back({id, route, bytes, component});
  }

  void advance(Time limit, std::vector<FlowId>& finished) override {
    process_starts();
    const std::size_t before = finished.size();
    for (;;) {
      while (!completions_.empty() && !is_current(completions_.top())) completions_.pop();
      const bool over = finished.size() > before;
      Time until = over ? now_ : std::min(limit, completions_.empty() ? kNever : completions_.top().at);
      if (joint_.running()) until = run_joint(until, finished);
      if (completions_.empty() || completions_.top().at > until || completions_.top().at > limit) break;
      const Completion top = completions_.top();
      completions_.pop();
      if (components_[top.component].next == nullptr) {
        find_next(top.component);
        continue;
      }
      now_ = last_activity_ = top.at;
      process_completion(top.component, finished);
    }
    if (finished.size() > before)
      std::sort(finished.begin() + static_cast<std::ptrdiff_t>(before), finished.end());
    else if (limit != kNever)
      now_ = limit;
  }

  PauseDependencies deadlock() const override {
    PauseDependencies waits = joint_.deadlock();
    for (const FlowComponent& component : components_) {
      if (!component.live || !component.next) continue;
      const PauseDependencies more = relabeled(component.next->deadlock, component.links);
      waits.insert(waits.end(), more.begin(), more.end());
    }
    return waits;
  }
  Time now() const override { return now_; }
  bool drained() const override { return live_ == 0 && joint_.drained(); }
  Time last_activity() const override {
    return joint_.running() ? std::max(last_activity_, joint_.last_activity()) : last_activity_;
  }
  const Counters& counters() const override { return counters_; }
  std::unique_ptr<Flows> clone() const override { return std::make_unique<DecomposedFlows>(*this); }
  void absorb(Flows& other, Time shift) override { absorb(dynamic_cast<DecomposedFlows&>(other), shift); }

 private:
  std::uint32_t open_component() {
    std::uint32_t slot = static_cast<std::uint32_t>(components_.size());
    if (free_.empty()) {
      components_.emplace_back();
      group_.add();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    group_.detach(slot);
    FlowComponent& component = components_[slot];
    component.live = true;
    component.state_time = now_;
    component.state = nullptr;
    component.next = nullptr;
    component.begun = nullptr;
    component.credit = first_credit();
    component.flows.clear();
    component.links.clear();
    ++live_;
    return slot;
  }

  void close_component(std::uint32_t slot) {
    FlowComponent& component = components_[slot];
    component.live = false;
    ++component.generation;
    component.state = nullptr;
    component.next = nullptr;
    component.begun = nullptr;
    free_.push_back(slot);
    --live_;
  }

  std::uint64_t order(FlowId id) const {
    return static_cast<std::uint64_t>(tie_order_[id.collective]) << 32 | id.transfer;
  }

  bool is_current(const Completion& completion) const {
    return components_[completion.component].live &&
           components_[completion.component].generation == completion.generation;
  }

  /// Schedules the next completion of a component, or the time before which it need not be known; or moves the
  /// component to the joint simulation if caching has cost too much.
  void schedule(std::uint32_t slot) {
    if (components_[slot].credit < -kMaxDebt && may_simulate_jointly()) return move_to_joint(slot);
    FlowComponent& component = components_[slot];
    if (auto known = cache_->known_outcome(*component.state)) return schedule_next(slot, {std::move(known), true});
    // Skipping by rate may end flows a little early.
    const Time least = cache_->transport().rate_tolerance_ppm == 0 ? component.state->least_ps : 0;
    component.begun = cache_->begin(component.state);
    completions_.push({component.state_time + least, slot, component.generation});
  }

  /// Finds the next completion of a component, of which only the earliest time is scheduled so far.
  void find_next(std::uint32_t slot) {
    FlowComponent& component = components_[slot];
    schedule_next(slot, cache_->outcome(*component.state, std::exchange(component.begun, nullptr)));
  }

  void schedule_next(std::uint32_t slot, ComponentCache::Found found) {
    FlowComponent& component = components_[slot];
    account(component, found);
    component.next = std::move(found.outcome);
    if (component.next->deadlock.empty())  // a deadlocked component stays so, even if flows join it
      completions_.push({component.state_time + component.next->elapsed, slot, component.generation});
  }

  void account(FlowComponent& component, const ComponentCache::Found& found) {
    const std::int64_t simulation_cost = found.outcome->counters.link_hops * kLinkHopCost;
    if (found.known) {
      if (component.credit <= -kMaxDebt) doublings_ = 0;
      adjust_credit(component, simulation_cost - kHitCost);
    } else {
      adjust_credit(component, simulation_cost / kMissShare - kMissCost -
                                   kMissCostPerWord * static_cast<std::int64_t>(component.state->words.size()));
    }
  }

  void adjust_credit(FlowComponent& component, std::int64_t saved) {
    component.credit = std::min(component.credit + saved, kMaxDebt);
    cache_->balance = std::min(cache_->balance + saved, kMaxBalance);
  }
  /// Components may be moved to the joint simulation, which never skips time, only if cached outcomes are exact: the
  /// decision depends on costs, and thus on earlier simulations, so it must not change results, as it would with
  /// skipping by rate.
  bool may_simulate_jointly() const { return cache_->transport().rate_tolerance_ppm == 0; }
  /// Returns the credit of a component without history; if caching has not paid off so far, it may miss only once.
  std::int64_t first_credit() const { return cache_->balance < 0 ? -kMaxDebt : 0; }

  /// Moves a component whose state is that of now() to the joint simulation.
  void move_to_joint(std::uint32_t slot) {
    if (!joint_.running()) {
      joint_slot_ = open_component();
      --live_;  // drained() asks the joint simulation itself
    }
    const FlowComponent& component = components_[slot];
    orders_.clear();
    for (const FlowId id : component.flows) orders_.push_back(order(id));
    joint_.add_component(now_, *component.state, component.flows, component.links, orders_);
    for (const std::uint32_t link : component.links) owner_[link] = joint_slot_;
    close_component(slot);
  }

  /// Runs the joint simulation to its next completion, at most to `until`; returns the time it reached.
  Time run_joint(Time until, std::vector<FlowId>& finished) {
    const std::size_t before = finished.size();
    const auto [now, counters] = joint_.run(until, finished);
    counters_ += counters;
    cache_->balance = std::min(cache_->balance + counters.link_hops * kLinkHopCost / kMissShare, kMaxBalance);
    const bool completes = finished.size() > before;
    if (completes) now_ = last_activity_ = until = now;
    if (joint_.drained() || (completes && joint_.worth_decomposing(kMinHopsPerWord << doublings_))) decompose();
    return until;
  }

  /// Decomposes the joint simulation into components, each of which may cost one cache miss before it is moved back.
  void decompose() {
    last_activity_ = last_activity();
    for (const std::uint32_t link : joint_.links()) owner_[link] = kNone;
    ++live_;
    close_component(std::exchange(joint_slot_, kNone));
    doublings_ = std::min(doublings_ + 1, kMaxDoublings);
    JointSimulation::Decomposition decomposition = joint_.decompose();
    counters_ += decomposition.counters;
    for (JointSimulation::Part& part : decomposition.parts) {
      const std::uint32_t created = open_component();
      FlowComponent& component = components_[created];
      component.state = std::move(part.state);
      component.flows = std::move(part.flows);
      component.links = std::move(part.links);
      component.credit = -kMaxDebt;
      for (const std::uint32_t link : component.links) owner_[link] = created;
      unscheduled_.push_back(created);
    }
  }

  /// Processes the next completion of a component and replaces it by the components that remain.
  void process_completion(std::uint32_t slot, std::vector<FlowId>& finished) {
    const FlowComponent ended = std::move(components_[slot]);
    components_[slot].generation = ended.generation;
    close_component(slot);
    counters_ += ended.next->counters;
    for (const std::uint32_t link : ended.links) owner_[link] = kNone;
    for (const std::uint32_t number : ended.next->completed) finished.push_back(ended.flows[number]);
    for (const Outcome::Part& part : ended.next->parts) {
      const std::uint32_t created = open_component();
      FlowComponent& component = components_[created];
      component.state = part.state;
      component.credit = ended.credit;
      for (const std::uint32_t number : part.flows) component.flows.push_back(ended.flows[number]);
      for (const std::uint32_t number : part.links) {
        component.links.push_back(ended.links[number]);
        owner_[ended.links[number]] = created;
      }
      unscheduled_.push_back(created);
    }
  }

  /// Joins flows that started at this instant with the components whose links they use, and schedules new components.
  void process_starts() {
    if (!starts_.empty()) {
      std::sort(starts_.begin(), starts_.end(), [&](const PendingStart& a, const PendingStart& b) {
        const std::uint32_t ra = group_.root(a.group), rb = group_.root(b.group);
        return ra != rb ? ra < rb : order(a.id) < order(b.id);
      });
      // (group, component) of existing components that share a link with a start.
      std::vector<std::pair<std::uint32_t, std::uint32_t>> touched;
      for (const PendingStart& start : starts_)
        for (const std::uint32_t link : routes_.links_of(start.route)) {
          const std::uint32_t owner = owner_[link];
          if (components_[owner].state) touched.emplace_back(group_.root(owner), owner);
        }
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      auto old = touched.begin();
      for (std::size_t begin = 0, end = 0; begin < starts_.size(); begin = end) {
        const std::uint32_t group = group_.root(starts_[begin].group);
        while (end < starts_.size() && group_.root(starts_[end].group) == group) ++end;
        auto old_end = old;
        while (old_end != touched.end() && old_end->first == group) ++old_end;
        start_group({starts_.data() + begin, end - begin}, {old, old_end});
        old = old_end;
      }
      starts_.clear();
    }
    for (const std::uint32_t slot : unscheduled_)
      if (components_[slot].live && components_[slot].state && !components_[slot].next) schedule(slot);
    unscheduled_.clear();
    if (joint_.running()) group_.detach(joint_slot_);  // keeps its slot; the slots joined with it are closed
  }

  using TouchedIterator = std::vector<std::pair<std::uint32_t, std::uint32_t>>::const_iterator;

  /// Starts the flows of one group, together with the existing components that they share links with.
  void start_group(std::span<const PendingStart> starts, std::pair<TouchedIterator, TouchedIterator> old) {
    if (joint_.running() && group_.root(joint_slot_) == group_.root(starts.front().group))
      return start_in_joint(starts, old);
    if (starts.size() == 1 && old.first == old.second) {
      const PendingStart& start = starts.front();
      FlowComponent& component = components_[start.group];
      component.state = routes_.fresh(start.route, start.bytes, *cache_);
      component.flows = {start.id};
      component.links = routes_.links_of(start.route);
      unscheduled_.push_back(start.group);
      return;
    }
    const JoinProblem problem = build_join(starts, old);
    const auto load = [&](Engine& engine) {
      std::vector<std::uint32_t> flow_slots, link_slots;
      std::size_t first = 0;
      for (const auto& state : problem.states) {
        const std::size_t flows = state->words[1];
        engine.load(state->words, {problem.orders.data() + first, flows}, flow_slots, link_slots);
        first += flows;
      }
      for (const LinkSpec& spec : problem.fresh) engine.add_link(spec);
      for (std::size_t i = 0; i < starts.size(); ++i)
        engine.start(problem.routes[i], starts[i].bytes, problem.orders[first + i]);
    };
    const ComponentCache::Joined joined = cache_->join(problem.words, load);
    for (const Outcome::Part& part : *joined.parts) {
      const std::uint32_t created = open_component();
      FlowComponent& component = components_[created];
      component.state = part.state;
      component.credit = problem.credit;
      const auto words = static_cast<std::int64_t>(component.state->words.size());
      adjust_credit(component, joined.known ? -kHitCost : -kJoinCost - kJoinCostPerWord * words);
      for (const std::uint32_t slot : part.flows) component.flows.push_back(problem.ids[slot]);
      for (const std::uint32_t slot : part.links) {
        component.links.push_back(problem.links[slot]);
        owner_[problem.links[slot]] = created;
      }
      unscheduled_.push_back(created);
    }
  }

  JoinProblem build_join(std::span<const PendingStart> starts, std::pair<TouchedIterator, TouchedIterator> old) {
    JoinProblem created;
    created.credit = first_credit();
    created.words = {static_cast<std::uint64_t>(old.second - old.first), starts.size()};
    for (auto it = old.first; it != old.second; ++it) {
      advance_to_now(it->second);
      const FlowComponent& component = components_[it->second];
      created.credit = std::min(created.credit, component.credit);
      created.states.push_back(component.state);
      created.words.insert(created.words.end(), component.state->digest.begin(), component.state->digest.end());
      created.ids.insert(created.ids.end(), component.flows.begin(), component.flows.end());
      created.links.insert(created.links.end(), component.links.begin(), component.links.end());
      close_component(it->second);
    }
    slot_of_link_.resize(owner_.size(), kNone);
    for (std::uint32_t slot = 0; slot < created.links.size(); ++slot) slot_of_link_[created.links[slot]] = slot;
    for (const PendingStart& start : starts) {
      Route& route = created.routes.emplace_back();
      created.words.push_back(static_cast<std::uint64_t>(start.bytes));
      created.words.push_back(routes_.links_of(start.route).size());
      for (const std::uint32_t link : routes_.links_of(start.route)) {
        if (slot_of_link_[link] == kNone) {
          slot_of_link_[link] = static_cast<std::uint32_t>(created.links.size());
          created.links.push_back(link);
          created.fresh.push_back(routes_.specs()[link]);
          append_spec(created.words, routes_.specs()[link]);
        }
        route.push_back(slot_of_link_[link]);
        created.words.push_back(route.back());
      }
      created.ids.push_back(start.id);
      close_component(start.group);
    }
    for (const std::uint32_t link : created.links) slot_of_link_[link] = kNone, owner_[link] = kNone;
    for (const FlowId id : created.ids) created.orders.push_back(order(id));
    std::vector<std::uint64_t> ranked(created.ids.size());
    std::iota(ranked.begin(), ranked.end(), 0u);
    std::sort(ranked.begin(), ranked.end(), [&](auto a, auto b) { return created.orders[a] < created.orders[b]; });
    created.words.insert(created.words.end(), ranked.begin(), ranked.end());
    return created;
  }

  void start_in_joint(std::span<const PendingStart> starts, std::pair<TouchedIterator, TouchedIterator> old) {
    for (auto it = old.first; it != old.second; ++it) {
      advance_to_now(it->second);
      move_to_joint(it->second);
    }
    for (const PendingStart& start : starts) {
      const Route& links = routes_.links_of(start.route);
      joint_.start(start.id, links, routes_.specs(), start.bytes, order(start.id));
      for (const std::uint32_t link : links) owner_[link] = joint_slot_;
      close_component(start.group);
    }
  }

  /// Advances the state of a component to now().
  void advance_to_now(std::uint32_t slot) {
    FlowComponent& component = components_[slot];
    if (now_ == component.state_time) return;
    const ComponentCache::Found found = cache_->outcome(*component.state, now_ - component.state_time);
    account(component, found);
    const auto& outcome = found.outcome;
    MANYWORLDS_CHECK(outcome->completed.empty() && outcome->parts.size() == 1, "a cluster of {} flows came to {} parts",
                     component.flows.size(), outcome->parts.size());
    counters_ += outcome->counters;
    const Outcome::Part& part = outcome->parts.front();
    std::vector<FlowId> flows;
    std::vector<std::uint32_t> links;
    for (const std::uint32_t number : part.flows) flows.push_back(component.flows[number]);
    for (const std::uint32_t number : part.links) links.push_back(component.links[number]);
    for (const std::uint32_t link : component.links) owner_[link] = kNone;
    component.state = part.state;
    component.flows = std::move(flows);
    component.links = std::move(links);
    component.state_time = now_;
  }

  void absorb(DecomposedFlows& other, Time shift) {
    const auto first_link = static_cast<std::uint32_t>(owner_.size()), first_route = routes_.routes();
    const auto first_collective = static_cast<std::uint32_t>(tie_order_.size());
    const std::vector<PendingStart> starts = other.take_starts();
    if (other.joint_.running()) other.decompose();
    routes_.append(other.routes_);
    owner_.resize(routes_.specs().size(), kNone);
    std::vector<std::uint32_t> slots(other.components_.size(), kNone);  // by slot of the other
    for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
      FlowComponent& from = other.components_[slot];
      if (!from.live) continue;
      slots[slot] = open_component();
      FlowComponent& component = components_[slots[slot]];
      const std::uint32_t generation = component.generation;
      component = std::move(from);
      component.generation = generation;
      component.state_time += shift;
      for (FlowId& id : component.flows) id.collective += first_collective;
      for (std::uint32_t& link : component.links) owner_[link += first_link] = slots[slot];
    }
    for (; !other.completions_.empty(); other.completions_.pop()) {
      const Completion& due = other.completions_.top();
      if (slots[due.component] != kNone && due.generation == other.components_[due.component].generation)
        completions_.push({due.at + shift, slots[due.component], components_[slots[due.component]].generation});
    }
    for (const std::uint32_t slot : other.unscheduled_)
      if (slots[slot] != kNone) unscheduled_.push_back(slots[slot]);
    for (PendingStart one : starts) {
      one.id.collective += first_collective;
      start(one.id, first_route + one.route, one.bytes);
    }
    last_activity_ = std::max(last_activity_, other.last_activity_ + shift);
    counters_ += other.counters_;
  }

  /// Takes back the flows that start at this instant and have not been processed.
  std::vector<PendingStart> take_starts() {
    for (const PendingStart& start : starts_) {
      for (const std::uint32_t link : routes_.links_of(start.route))
        if (owner_[link] == start.group) owner_[link] = kNone;
      close_component(start.group);
    }
    return std::exchange(starts_, {});
  }

  ComponentCache* cache_;
  JointSimulation joint_;
  std::uint32_t joint_slot_ = kNone;  // represents the joint simulation among the components while it runs
  std::uint32_t doublings_ = 0;
  Time now_ = 0, last_activity_ = 0;
  std::vector<std::uint32_t> owner_;  // by link: the slot of its component, or kNone
  FlowRoutes routes_;
  std::vector<std::uint32_t> tie_order_;
  std::vector<FlowComponent> components_;
  sharing::UnionFind group_;  // connects the component slots of flows that start at this instant
  std::vector<std::uint32_t> free_, unscheduled_;
  std::vector<std::uint32_t> slot_of_link_;
  std::vector<std::uint64_t> orders_;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> completions_;
  std::vector<PendingStart> starts_;
  std::size_t live_ = 0;
  Counters counters_;
};

}  // namespace

std::unique_ptr<Flows> make_decomposed_flows(const Transport& transport, ComponentCache& cache) {
  MANYWORLDS_CHECK(cache.transport() == transport, "a memo serves one transport");
  return std::make_unique<DecomposedFlows>(cache);
}

}  // namespace manyworlds::core::network
