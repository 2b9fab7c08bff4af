// Execution of collectives on flows: members enter, transfers start when their predecessors in the DAG have finished,
// and members exit when all their transfers have finished.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/collective/dag/transfer_generator.hpp"
#include "core/network/flows/flows.hpp"

namespace manyworlds::core::network {

/// The event that a member has finished a collective.
struct Exit {
  Time at = 0;
  std::uint32_t collective = 0;
  std::uint32_t member = 0;
  auto operator<=>(const Exit&) const = default;
};

class Traffic {
 public:
  explicit Traffic(std::unique_ptr<Flows> flows) : flows_(std::move(flows)) {}
  Traffic(const Traffic& other);
  Traffic& operator=(const Traffic&) = delete;
  Traffic(Traffic&&) = default;
  Traffic& operator=(Traffic&&) = default;

  std::uint32_t add_link(const LinkSpec& spec) { return flows_->add_link(spec); }
  /// Adds a set of routes over links of add_link(), one for each pair of a DAG; any number of collectives may use it.
  /// Returns the number of the set.
  std::uint32_t add_routes(const std::vector<Route>& routes);
  /// Adds a collective over a set of routes, one for each of dag->pairs. Returns its number. Its tie order must be set
  /// before any member enters.
  std::uint32_t add(std::shared_ptr<const collective::Dag> dag, std::uint32_t routes);
  std::uint32_t add(std::shared_ptr<const collective::Dag> dag, const std::vector<Route>& routes) {
    return add(std::move(dag), add_routes(routes));
  }
  /// Adds a collective whose transfers are generated, of which only those under way are kept.
  std::uint32_t add(std::shared_ptr<const collective::TransferGenerator> generator, const std::vector<Route>& routes);
  void add_tie_order(std::uint32_t position) { flows_->add_tie_order(position); }
  void set_tie_order(const std::vector<std::uint32_t>& order_of_collective) {
    flows_->set_tie_order(order_of_collective);
  }

  /// Lets a member enter at now(); its first transfers begin after Dag::launch_ps. A member may enter only once.
  void enter(std::uint32_t collective, std::uint32_t member);
  /// Advances to the first instant with exits, at most to `limit`, and appends them in ascending order.
  void advance(Time limit, std::vector<Exit>& exits);

  /// Takes over the collectives of `other`, whose times differ by `shift` and which has reached now(), with its links,
  /// sets of routes and collectives numbered on from those known so far. The tie order must then be set anew.
  void absorb(Traffic other, Time shift);

  /// Returns the waiting links of a PFC deadlock, as Flows does.
  PauseDependencies deadlock() const { return flows_->deadlock(); }

  Time now() const { return flows_->now(); }
  /// Returns whether no transfer is in flight and none will start unless a member enters.
  bool drained() const { return delayed_.empty() && flows_->drained(); }
  Time last_activity() const { return flows_->last_activity(); }
  const Counters& counters() const { return flows_->counters(); }
  std::vector<LinkLoad> loads() const { return flows_->loads(); }

 private:
  struct RunningCollective {
    std::shared_ptr<const collective::Dag> dag;  // this or a generator
    std::shared_ptr<const collective::TransferGenerator> generator;
    std::uint32_t routes = 0;
    std::vector<std::uint16_t> wait_count;  // by node: missing predecessors and entries (initially Dag::wait_count)
    std::unordered_map<std::uint32_t, std::uint32_t>
        waiting;                           // generated transfers of which something is satisfied: what they miss
    std::vector<std::uint32_t> remaining;  // by member: its unfinished transfers, sent or received
    std::vector<bool> entered;             // by member
    std::uint32_t members_inside = 0;      // number of members that have not exited
  };

  /// A member whose launch overhead ends at `at`, or a transfer whose start delay does.
  struct DelayedStart {
    Time at = 0;
    bool is_entry = false;
    FlowId item;  // (collective, member) or (collective, transfer)
    auto operator<=>(const DelayedStart&) const = default;
  };

  RunningCollective& running(std::uint32_t collective) { return running_[slot_of_[collective]]; }
  RunningCollective& open_slot(std::uint32_t members, std::uint32_t routes);
  void open(FlowId member);
  void satisfy_dependency(std::uint32_t collective, std::uint32_t node);
  void satisfy_generated(std::uint32_t collective, std::uint32_t transfer);
  void start_after(std::uint32_t delay_ps, FlowId id);
  void start(FlowId id);
  void postpone(const DelayedStart& item);
  void start_delayed();
  void finish(FlowId id, std::vector<Exit>& exits);
  void finish_generated(FlowId id, std::vector<Exit>& exits);
  void leave(std::uint32_t collective, std::pair<std::uint32_t, std::uint32_t> members, std::vector<Exit>& exits);

  std::unique_ptr<Flows> flows_;
  std::vector<std::vector<std::uint32_t>> routes_;  // by set and pair: route number of the flows
  std::vector<RunningCollective> running_;          // slots, reused after a collective ends
  std::vector<std::uint32_t> slot_of_, free_;       // slot of each collective (kNone after its end); free slots
  std::vector<DelayedStart> delayed_;               // a heap, earliest first
  std::vector<FlowId> finished_;
  std::vector<std::uint32_t> successors_;
};

}  // namespace manyworlds::core::network
