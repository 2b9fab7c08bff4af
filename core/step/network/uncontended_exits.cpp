#include "core/step/network/uncontended_exits.hpp"

#include <algorithm>
#include <functional>

namespace manyworlds::core::step {

UncontendedExits::UncontendedExits(const CompiledStep& compiled, const IsolatedResults& results)
    : compiled_(compiled),
      results_(&results),
      isolated_(compiled.collective_ops().size()),
      paths_(compiled.collective_ops().size()),
      slots_(compiled.instances(), kNoSlot) {}

UncontendedExits::State& UncontendedExits::state_of(InstanceId instance) {
  std::uint32_t& slot = slots_[instance];
  if (slot == kNoSlot) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(states_.size()));
      states_.emplace_back();
    }
    slot = free_.back();
    free_.pop_back();
  }
  return states_[slot];
}

/// A single first member is only noted, because a transfer begins when both of its ends have entered; the exceptions
/// are DAGs with switches, which count as ends, and members that represent several ranks.
void UncontendedExits::enter(Time at, std::span<const Member> members) {
  const InstanceId instance = members[0].instance;
  const CollectiveOp& collective_op = compiled_.collective_op_of(instance);
  State& state = state_of(instance);
  if (!state.critical_paths && !state.has_lone_member && members.size() == 1 && collective_op.dag->members > 1 &&
      collective_op.dag->switches.empty() && collective_op.ranks_per_member() == 1) {
    state.has_lone_member = true;
    state.lone_member = members[0].member;
    return;
  }
  const bool had_lone_member = std::exchange(state.has_lone_member, false);
  if (!state.critical_paths && members.size() + had_lone_member == collective_op.dag->members) {
    state.isolated = state.closed = true;
    state.origin = at;
    unresolved_.push_back(instance);
    return;
  }
  if (had_lone_member) enter_member(at, {instance, state.lone_member});
  for (const Member& member : members) enter_member(at, member);
}

void UncontendedExits::enter_member(Time at, const Member& member) {
  State& state = state_of(member.instance);
  const CollectiveOpId id = compiled_.collective_op_id(member.instance);
  const CollectiveOp& collective_op = compiled_.collective_ops()[id];
  if (!state.critical_paths) {
    state.critical_paths = std::make_unique<CriticalPaths>(collective_op.dag, paths_of(id));
    transfers_ += static_cast<std::int64_t>(collective_op.dag->transfers.size());
    ++open_;
  }
  known_.clear();
  state.critical_paths->enter(compiled_.transport(), member.member, at, 0, known_);
  for (const network::Exit& exit : known_) {
    state.exits.emplace_back(exit.at, exit.member);
    std::push_heap(state.exits.begin(), state.exits.end(), std::greater<>());
  }
  if (!known_.empty()) scheduled_.push_back(member.instance);
  if (!state.critical_paths->is_over()) return;
  counters_.link_hops += state.critical_paths->link_hops() * collective_op.groups * collective_op.ranks_per_member();
  state.critical_paths.reset();
  state.closed = true;
  --open_;
}

std::vector<InstanceId> UncontendedExits::take_scheduled() {
  for (const InstanceId instance : unresolved_) {
    const CollectiveOp& collective_op = compiled_.collective_op_of(instance);
    IsolatedCollectives& isolated = isolated_[compiled_.collective_op_id(instance)];
    if (!isolated.result) transfers_ += static_cast<std::int64_t>(collective_op.dag->transfers.size());
    isolated.look_up(collective_op, *results_);
    count(compiled_.collective_op_id(instance));
    scheduled_.push_back(instance);
  }
  unresolved_.clear();
  return std::exchange(scheduled_, {});
}

void UncontendedExits::count(CollectiveOpId isolated) {
  ++isolated_[isolated].times;
  counters_ += isolated_[isolated].result->counters * compiled_.collective_ops()[isolated].groups;
}

Time UncontendedExits::next(InstanceId instance) const {
  if (slots_[instance] == kNoSlot) return kNever;
  const State& state = states_[slots_[instance]];
  if (!state.isolated) return state.exits.empty() ? kNever : state.exits.front().first;
  const auto& exits = isolated_[compiled_.collective_op_id(instance)].exits;
  return state.exits_taken < exits.size() ? state.origin + exits[state.exits_taken].first : kNever;
}

void UncontendedExits::take(InstanceId instance, Time at, std::vector<Member>& exits) {
  const std::uint32_t slot = slots_[instance];
  State& state = states_[slot];
  if (state.isolated) {
    const auto& leaving = isolated_[compiled_.collective_op_id(instance)].exits;
    for (; state.exits_taken < leaving.size() && state.origin + leaving[state.exits_taken].first == at;
         ++state.exits_taken)
      exits.push_back({instance, leaving[state.exits_taken].second});
  } else {
    while (!state.exits.empty() && state.exits.front().first == at) {
      std::pop_heap(state.exits.begin(), state.exits.end(), std::greater<>());
      exits.push_back({instance, state.exits.back().second});
      state.exits.pop_back();
    }
  }
  if (!state.closed || next(instance) != kNever) return;
  state = {};
  free_.push_back(slot);
  slots_[instance] = kNoSlot;
}

std::vector<CollectiveOpId> UncontendedExits::missing() const {
  std::vector<CollectiveOpId> collective_ops;
  for (const InstanceId instance : unresolved_) collective_ops.push_back(compiled_.collective_op_id(instance));
  return missing_results(compiled_, isolated_, *results_, std::move(collective_ops));
}

UsageCounts UncontendedExits::isolated_usage() const {
  return isolated_usage_of(compiled_, isolated_);
}

const std::shared_ptr<const CriticalPaths::Paths>& UncontendedExits::paths_of(CollectiveOpId collective_op) {
  std::shared_ptr<const CriticalPaths::Paths>& slot = paths_[collective_op];
  if (slot) return slot;
  const CollectiveOp& op = compiled_.collective_ops()[collective_op];
  CriticalPaths::Paths paths = step::paths_of(*op.dag, *op.connections, compiled_.layout().graph());
  // What a member has in the end, or has sent for it, depends on the data of all others.
  const bool depends_on_all = op.shape.kind == collective::Kind::all_reduce ||
                              op.shape.kind == collective::Kind::all_gather ||
                              op.shape.kind == collective::Kind::reduce_scatter;
  if (depends_on_all) paths.rounds = repeated_rounds_of(*op.dag, paths, compiled_.transport());
  return slot = std::make_shared<const CriticalPaths::Paths>(std::move(paths));
}

}  // namespace manyworlds::core::step
