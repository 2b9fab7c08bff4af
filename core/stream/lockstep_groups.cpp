// Lockstep groups: how they part, and which of them join again.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/stream/timeline.hpp"

namespace manyworlds::core::stream {

using workload::CollectiveCall;
using workload::Op;

void Timeline::split(std::uint32_t index, Time at) {
  std::vector<Completion> all = std::move(groups_[index].completions);
  groups_[index].completions.clear();
  std::stable_sort(all.begin(), all.end(), [](const Completion& a, const Completion& b) { return a.rank < b.rank; });
  // Ranks with equal completions: `size` entries of `all` from `begin` for its first rank, and equal ones for the
  // others.
  struct Subgroup {
    std::size_t begin, size;
    std::vector<RepresentativeId> ranks;
  };
  std::vector<Subgroup> subgroups;
  std::size_t begin = 0;
  for (const RepresentativeId rank : groups_[index].ranks) {
    std::size_t end = begin;
    while (end < all.size() && all[end].rank == rank) ++end;
    auto subgroup = std::find_if(subgroups.begin(), subgroups.end(), [&](const Subgroup& one) {
      return one.size == end - begin &&
             std::equal(all.begin() + static_cast<std::ptrdiff_t>(begin),
                        all.begin() + static_cast<std::ptrdiff_t>(end),
                        all.begin() + static_cast<std::ptrdiff_t>(one.begin),
                        [](const Completion& a, const Completion& b) { return a.is_like(b); });
    });
    if (subgroup == subgroups.end()) subgroup = subgroups.insert(subgroup, {begin, end - begin, {}});
    subgroup->ranks.push_back(rank);
    begin = end;
  }
  std::vector<std::uint32_t> group_ids{index};
  for (std::size_t i = 1; i < subgroups.size(); ++i) {
    group_ids.push_back(open_group(groups_[index].program));
    groups_[group_ids.back()].state = groups_[index].state;
    touch(group_ids.back());
  }
  const ProgramStreams& streams = streams_of(groups_[index]);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const StreamState& stream = groups_[index].state.streams[i];
    if (stream.is_idle() || stream.ends == kNever) continue;
    const std::uint32_t op = streams.ops[i][stream.done];
    const bool collective = programs_[groups_[index].program].ops[op].collective() != nullptr;
    for (std::size_t subgroup = 1; subgroup < subgroups.size(); ++subgroup)
      push(collective ? running_whole_ : running_kernels_, {stream.ends, group_ids[subgroup], op});
  }
  for (std::size_t i = 0; i < subgroups.size(); ++i) {
    for (const RepresentativeId rank : subgroups[i].ranks) group_of_[rank] = group_ids[i];
    groups_[group_ids[i]].ranks = std::move(subgroups[i].ranks);
    groups_[group_ids[i]].leaders.clear();
  }
  if (const std::uint32_t record = std::exchange(groups_[index].record, kNoRecord); record != kNoRecord)
    split_record(record, group_ids);
  for (std::size_t i = 0; i < subgroups.size(); ++i) {
    for (std::size_t c = 0; c < subgroups[i].size; ++c) end_collective(group_ids[i], all[subgroups[i].begin + c], at);
  }
}

/// After a split, every part that contains a recorded rank has a record that begins with what was recorded before.
void Timeline::split_record(std::uint32_t record, const std::vector<std::uint32_t>& groups) {
  bool assigned = false;
  for (const std::uint32_t subgroup : groups) {
    LockstepGroup& group = groups_[subgroup];
    if (std::none_of(group.ranks.begin(), group.ranks.end(),
                     [&](RepresentativeId rank) { return recorded_ranks_[rank]; }))
      continue;
    group.record = assigned ? static_cast<std::uint32_t>(records_.size()) : record;
    if (std::exchange(assigned, true)) records_.push_back(Record(records_[record]));
  }
}

/// Returns the number of a group without ranks. A number belongs to one program, as the heap may have its kernels.
std::uint32_t Timeline::open_group(std::uint32_t program) {
  std::vector<std::uint32_t>& free = free_groups_[program];
  if (free.empty()) {
    free.push_back(static_cast<std::uint32_t>(groups_.size()));
    groups_.emplace_back().program = program;
  }
  const std::uint32_t group = free.back();
  free.pop_back();
  return group;
}

/// Joins those groups for which a collective ended at this instant that are alike.
void Timeline::join_groups() {
  if (may_join_.size() > 1) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> by_hash;
    for (const std::uint32_t group : may_join_)
      if (!is_recorded(groups_[group])) by_hash.emplace_back(hash_of(groups_[group]), group);
    std::sort(by_hash.begin(), by_hash.end());
    by_hash.erase(std::unique(by_hash.begin(), by_hash.end()), by_hash.end());  // two collectives ended for it
    for (std::size_t first = 0, next = 1; next < by_hash.size(); ++next) {
      if (by_hash[first].first != by_hash[next].first ||
          !alike(groups_[by_hash[first].second], groups_[by_hash[next].second]))
        first = next;
      else
        join(by_hash[first].second, by_hash[next].second);
    }
  }
  may_join_.clear();
}

/// Moves the ranks of `other` to `into`, which must be alike.
void Timeline::join(std::uint32_t into, std::uint32_t other) {
  LockstepGroup &group = groups_[into], &joining = groups_[other];
  if (account_difference_.size() == 0) account_difference_.assign(program_of_.size(), Account());
  for (const RepresentativeId rank : joining.ranks) {
    group_of_[rank] = into;
    for (const workload::StepPartInfo& part : workload::kStepParts)
      account_difference_[rank][part.part] += joining.state.account[part.part] - group.state.account[part.part];
  }
  std::vector<RepresentativeId> ranks;
  ranks.reserve(group.ranks.size() + joining.ranks.size());
  std::merge(group.ranks.begin(), group.ranks.end(), joining.ranks.begin(), joining.ranks.end(),
             std::back_inserter(ranks));
  group.ranks = std::move(ranks);
  group.leaders.clear();
  joining.ranks.clear();
  joining.state = {};  // so that entries of the heap are outdated: its kernels end with those of the other
  joining.state.streams.resize(streams_of(joining).size());
  free_groups_[joining.program].push_back(other);
}

/// Returns whether what happens to two groups from now on cannot depend on which of them it is, and counts the same in
/// their accounts. What is not looked at is set before it is used again: the entry of a transfer between pipeline ranks
/// and what was its cause are never used (attribute_wait()).
bool Timeline::alike(const LockstepGroup& one, const LockstepGroup& other) const {
  const State &a = one.state, &b = other.state;
  if (one.program != other.program || is_recorded(one) || is_recorded(other) ||
      a.collective_load != b.collective_load || a.busy_until != b.busy_until || a.began != b.began ||
      a.ended != b.ended || a.cause != b.cause || a.previous_cause != b.previous_cause)
    return false;
  const ProgramStreams& streams = streams_of(one);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const StreamState &c = a.streams[i], &d = b.streams[i];
    if (c.issued != d.issued || c.done != d.done) return false;
    if (c.is_idle()) continue;
    const Op& op = programs_[one.program].ops[streams.ops[i][c.done]];
    if (const CollectiveCall* call = op.collective()) {
      if (!workload::is_pipeline_transfer(call->role) &&
          (c.ends != d.ends || c.entered != d.entered || c.cause_at_issue != d.cause_at_issue))
        return false;
    } else if (c.ends != d.ends || (op.stream == workload::Stream::compute &&
                                    (a.remaining_work != b.remaining_work || a.pace_changed_at != b.pace_changed_at))) {
      return false;
    }
  }
  return true;
}

/// Returns a hash that groups which are alike have in common.
std::uint64_t Timeline::hash_of(const LockstepGroup& group) const {
  std::uint64_t hash = group.program;
  const auto add = [&](std::uint64_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 32; };
  const State& state = group.state;
  for (const StreamState& stream : state.streams) add(std::uint64_t{stream.issued} << 32 | stream.done);
  for (const Time time : {state.busy_until, state.cause.entered, state.cause.began})
    add(static_cast<std::uint64_t>(time));
  return hash;
}

}  // namespace manyworlds::core::stream
