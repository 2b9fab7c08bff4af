// The exits of collectives to which no other one does anything, each on a clock of its own: one that all members enter
// at once has the isolated result of its operation, and any other one has its exits computed by critical paths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/step/network/critical_paths.hpp"
#include "core/step/network/isolated_collectives.hpp"

namespace manyworlds::core::step {

/// Calls `call` with the members of one instance at a time; `members` is ascending.
template <class Call>
void for_each_instance(const std::vector<Member>& members, Call call) {
  for (auto first = members.begin(), next = first; first != members.end(); first = next) {
    next = std::find_if(first, members.end(), [&](const Member& one) { return one.instance != first->instance; });
    call(std::span<const Member>(&*first, static_cast<std::size_t>(next - first)));
  }
}

class UncontendedExits {
 public:
  UncontendedExits(const CompiledStep& compiled, const IsolatedResults& results);

  /// Enters members of one instance at `at` on its clock, which must not be before any exit taken from it.
  void enter(Time at, std::span<const Member> members);
  /// Looks up the results of isolated instances entered so far, all of which must be available, and returns the
  /// instances whose exits have become known since the last call, in the order in which they did, perhaps repeatedly.
  std::vector<InstanceId> take_scheduled();
  /// Returns the next exit of an instance, or kNever if none is known.
  Time next(InstanceId instance) const;
  /// Appends the exits of an instance at `at`, which must be next() of it.
  void take(InstanceId instance, Time at, std::vector<Member>& exits);
  /// Whether the exits of all its members are known; it must be under way.
  bool is_closed(InstanceId instance) const { return states_[slots_[instance]].closed; }
  /// Returns a number for an instance that is under way, from its first entry until its last exit is taken; others get
  /// it afterwards. There are as many as instances were under way at once. kNoSlot before and after.
  std::uint32_t slot_of(InstanceId instance) const { return slots_[instance]; }
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;

  /// Returns after how long all members leave a collective that all enter at once, if that is the same for all and its
  /// result has been looked up; kNever otherwise.
  Time common_exit(CollectiveOpId id) const {
    const auto& exits = isolated_[id].exits;
    return exits.empty() || exits.front().first != exits.back().first ? kNever : exits.front().first;
  }
  /// Counts an isolated instance whose result has been looked up; also one whose exits nobody takes, as all members
  /// have entered it at once and its operation has a common_exit().
  void count(CollectiveOpId isolated);

  std::vector<CollectiveOpId> missing() const;
  /// From now on looks results up in `results`, which must have all that were there.
  void look_up_in(const IsolatedResults& results) { results_ = &results; }
  UsageCounts isolated_usage() const;
  const network::Counters& counters() const { return counters_; }
  /// Returns the transfers whose times are computed; there are no packets.
  Work work() const { return {0, transfers_}; }
  /// Returns whether instances have been entered by some of their members only, or have no result yet.
  bool has_open() const { return open_ > 0 || !unresolved_.empty(); }

  /// Returns the links on the path of each connection of an operation.
  const std::shared_ptr<const CriticalPaths::Paths>& paths_of(CollectiveOpId collective_op);

 private:
  /// Critical paths, which are copied with what owns them.
  struct OwnedPaths : std::unique_ptr<CriticalPaths> {
    OwnedPaths(std::unique_ptr<CriticalPaths> paths = nullptr) : unique_ptr(std::move(paths)) {}
    OwnedPaths(OwnedPaths&&) = default;
    OwnedPaths(const OwnedPaths& other) : unique_ptr(other ? std::make_unique<CriticalPaths>(*other) : nullptr) {}
    OwnedPaths& operator=(OwnedPaths&&) = default;
    ~OwnedPaths() = default;
  };
  struct State {
    bool has_lone_member = false;   // exactly one member has entered, which cannot send anything yet
    bool isolated = false;          // all members have entered at once
    bool closed = false;            // all exits are known
    std::uint32_t lone_member = 0;  // the member that has entered
    std::uint32_t exits_taken = 0;  // exits taken from an isolated instance
    Time origin = 0;                // entry time of an isolated instance
    OwnedPaths critical_paths;      // null unless some exits are still unknown
    std::vector<std::pair<Time, std::uint32_t>> exits;  // known exits of any other: a heap, earliest first
  };
  State& state_of(InstanceId instance);
  void enter_member(Time at, const Member& member);

  const CompiledStep& compiled_;
  const IsolatedResults* results_;
  IdVector<CollectiveOpId, IsolatedCollectives> isolated_;
  IdVector<CollectiveOpId, std::shared_ptr<const CriticalPaths::Paths>> paths_;
  IdVector<InstanceId, std::uint32_t> slots_;
  std::vector<State> states_;           // by slot
  std::vector<std::uint32_t> free_;     // slots
  std::vector<InstanceId> unresolved_;  // isolated instances whose result has not been looked up
  std::vector<InstanceId> scheduled_;   // instances with new exits
  std::vector<network::Exit> known_;    // scratch of enter_member()
  std::size_t open_ = 0;                // number of instances with critical paths
  network::Counters counters_;
  std::int64_t transfers_ = 0;
};

}  // namespace manyworlds::core::step
