// The composed network model under analytic fidelity. Collectives do not affect each other, so each is computed by
// itself: one that all members enter at once has the isolated result of its operation, and any other one has its exits
// computed by critical paths.
#include <algorithm>
#include <queue>
#include <span>
#include <utility>

#include "core/step/network/critical_paths.hpp"
#include "core/step/network/isolated_collectives.hpp"

namespace manyworlds::core::step {
namespace {

class AnalyticNetwork final : public KeyedNetwork {
 public:
  AnalyticNetwork(const CompiledStep& compiled, const IsolatedResults& results)
      : compiled_(compiled),
        results_(results),
        isolated_(compiled.collective_ops().size()),
        paths_(compiled.collective_ops().size()),
        instance_states_(compiled.instances()) {}

  void enter(Time at, const std::vector<Member>& members) override {
    for (auto first = members.begin(), next = first; first != members.end(); first = next) {
      next = std::find_if(first, members.end(), [&](const Member& one) { return one.instance != first->instance; });
      enter_members(at, {&*first, static_cast<std::size_t>(next - first)});
    }
  }

  Time next_exit(Time limit) override {
    for (const InstanceId instance : unresolved_) begin_isolated(instance);
    unresolved_.clear();
    return due_exits_.empty() || due_exits_.top().at > limit ? kNever : due_exits_.top().at;
  }

  void take_exits(Time at, std::vector<Member>& exits) override {
    while (!due_exits_.empty() && due_exits_.top().at == at) {
      const Due due = due_exits_.top();
      due_exits_.pop();
      if (due.member != kAllMembers) {
        exits.push_back({due.instance, due.member});
        continue;
      }
      InstanceState& state = instance_states_[due.instance];
      const auto& leaving = isolated_[compiled_.collective_op_id(due.instance)].exits;
      for (; state.exits_taken < leaving.size() && state.origin + leaving[state.exits_taken].first == at;
           ++state.exits_taken)
        exits.push_back({due.instance, leaving[state.exits_taken].second});
      if (state.exits_taken < leaving.size())
        due_exits_.push({state.origin + leaving[state.exits_taken].first, due.instance, kAllMembers});
    }
  }

  void release_drained(Time) override {
    MANYWORLDS_CHECK(due_exits_.empty() && open_instances_ == 0 && unresolved_.empty(),
                     "{} collectives outlive the step", open_instances_);
  }
  network::PauseDependencies deadlock() const override { return {}; }
  network::Counters counters() const override { return counters_; }
  const UsageCounts& episode_usage() const override { return no_episodes_; }

  std::vector<CollectiveOpId> missing() const override {
    std::vector<CollectiveOpId> collective_ops;
    for (const InstanceId instance : unresolved_) collective_ops.push_back(compiled_.collective_op_id(instance));
    return missing_results(compiled_, isolated_, results_, std::move(collective_ops));
  }

  UsageCounts isolated_usage() const override {
    UsageCounts all;
    for (const CollectiveOpId collective_op : isolated_.ids()) {
      if (isolated_[collective_op].times == 0) continue;
      for (const auto& [key, groups] : compiled_.collective_ops()[collective_op].keys) {
        UsageCount& used = all[key];
        used = {compiled_.collective_ops()[collective_op].shape.text(), isolated_[collective_op].exits.back().first,
                used.times + isolated_[collective_op].times * groups};
      }
    }
    return all;
  }

 private:
  static constexpr std::uint32_t kAllMembers = UINT32_MAX;  // stands for all members of an isolated instance
  struct Due {
    Time at;
    InstanceId instance;
    std::uint32_t member;
    bool operator>(const Due& other) const { return at > other.at; }
  };
  struct InstanceState {
    bool has_lone_member = false;                   // exactly one member has entered, which cannot send anything yet
    std::uint32_t lone_member = 0;                  // the member that has entered
    std::unique_ptr<CriticalPaths> critical_paths;  // null unless some exits are still unknown
    Time origin = 0;                                // entry time of an isolated instance
    std::uint32_t exits_taken = 0;                  // exits taken from an isolated instance
  };

  /// Enters members of one instance. A single first member is only noted, because a transfer begins when both of its
  /// ends have entered; the exceptions are DAGs with switches, which count as ends, and members that represent several
  /// ranks.
  void enter_members(Time at, std::span<const Member> members) {
    const CollectiveOp& collective_op = compiled_.collective_op_of(members[0].instance);
    InstanceState& state = instance_states_[members[0].instance];
    if (!state.critical_paths && !state.has_lone_member && members.size() == 1 && collective_op.dag->members > 1 &&
        collective_op.dag->switches.empty() && collective_op.ranks_per_member() == 1) {
      state.has_lone_member = true;
      state.lone_member = members[0].member;
      return;
    }
    const bool had_lone_member = std::exchange(state.has_lone_member, false);
    if (!state.critical_paths && members.size() + had_lone_member == collective_op.dag->members) {
      state.origin = at;
      unresolved_.push_back(members[0].instance);
      return;
    }
    if (had_lone_member) enter_member(at, {members[0].instance, state.lone_member});
    for (const Member& member : members) enter_member(at, member);
  }

  void begin_isolated(InstanceId instance) {
    const CollectiveOp& collective_op = compiled_.collective_op_of(instance);
    IsolatedCollectives& isolated = isolated_[compiled_.collective_op_id(instance)];
    isolated.look_up(collective_op, results_);
    ++isolated.times;
    counters_ += isolated.result->counters * collective_op.groups;
    due_exits_.push({instance_states_[instance].origin + isolated.exits[0].first, instance, kAllMembers});
  }

  void enter_member(Time at, const Member& member) {
    std::unique_ptr<CriticalPaths>& critical_paths = instance_states_[member.instance].critical_paths;
    const CollectiveOp& collective_op = compiled_.collective_op_of(member.instance);
    if (!critical_paths)
      critical_paths =
          std::make_unique<CriticalPaths>(collective_op.dag, paths_of(compiled_.collective_op_id(member.instance))),
      ++open_instances_;
    exits_.clear();
    critical_paths->enter(compiled_.transport(), member.member, at, 0, exits_);
    for (const network::Exit& exit : exits_) due_exits_.push({exit.at, member.instance, exit.member});
    if (!critical_paths->is_over()) return;
    counters_.link_hops += critical_paths->link_hops() * collective_op.groups * collective_op.ranks_per_member();
    critical_paths = nullptr, --open_instances_;
  }

  const std::shared_ptr<const CriticalPaths::Paths>& paths_of(CollectiveOpId collective_op) {
    std::shared_ptr<const CriticalPaths::Paths>& slot = paths_[collective_op];
    if (slot) return slot;
    auto new_paths = std::make_shared<CriticalPaths::Paths>();
    for (const network::Route& route : compiled_.collective_ops()[collective_op].connections->routes) {
      auto& path = new_paths->emplace_back();
      for (const std::uint32_t link : route) path.push_back(network::spec_of(compiled_.layout().graph(), link));
    }
    return slot = std::move(new_paths);
  }

  const CompiledStep& compiled_;
  const IsolatedResults& results_;
  IdVector<CollectiveOpId, IsolatedCollectives> isolated_;
  IdVector<CollectiveOpId, std::shared_ptr<const CriticalPaths::Paths>> paths_;
  IdVector<InstanceId, InstanceState> instance_states_;
  std::vector<InstanceId> unresolved_;  // isolated instances whose exits are not scheduled yet
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_exits_;
  std::vector<network::Exit> exits_;  // scratch of enter_member()
  std::size_t open_instances_ = 0;    // number of instances with critical paths
  network::Counters counters_;
  const UsageCounts no_episodes_;
};

}  // namespace

std::unique_ptr<KeyedNetwork> make_analytic(const CompiledStep& compiled, const IsolatedResults& results) {
  return std::make_unique<AnalyticNetwork>(compiled, results);
}

}  // namespace manyworlds::core::step
