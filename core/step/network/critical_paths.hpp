// A collective under analytic fidelity. A transfer takes its uncontended time (core/network/flows/analytic_flows.cpp),
// so the exits of members follow from their entries by the critical (longest) paths through the DAG. There is no event
// loop in order of time: each transfer is visited once, as soon as all its predecessors are known.
//
// The parts of one message that queue pairs send begin together, and what follows waits for all. So a link that several
// of them cross has all their bytes to send, and the last of them ends no earlier than it has done so: a bound for the
// message, if not for each part.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {

/// The transfers of a DAG whose rounds are all alike, as those of rings: as many in each, of the same connections with
/// the same bytes, each of which waits for the same ones of the round before, among them the one on its connection.
struct RepeatedRounds {
  std::uint32_t rounds = 0;
  std::vector<Time> takes;                   // by transfer of a round, with its delay
  std::vector<std::uint32_t> begin, before;  // transfer i waits for before[begin[i]] to before[begin[i + 1] - 1]
  std::int64_t link_hops = 0;                // of all rounds
};

class CriticalPaths {
 public:
  /// The links on the path of each of dag->pairs, and if messages of the DAG have parts, which links these are.
  struct Paths : std::vector<std::vector<network::LinkSpec>> {
    std::vector<network::Route> routes;
    /// Set only if no member exits before all have entered: then nothing is computed until they have.
    std::optional<RepeatedRounds> rounds;
  };

  CriticalPaths(std::shared_ptr<const collective::Dag> dag, std::shared_ptr<const Paths> paths);

  /// Enters a member at `at`, which must not be before earlier entries. Appends the exits that become known, labelled
  /// with `collective`; they are after `at` and in no order.
  void enter(const network::Transport& transport, std::uint32_t member, Time at, std::uint32_t collective,
             std::vector<network::Exit>& exits);

  /// Whether all exits are known.
  bool is_over() const { return pending_exits_ == 0; }
  /// Returns the end of the last known transfer.
  Time last_activity() const { return last_activity_; }
  std::int64_t link_hops() const { return link_hops_; }

 private:
  struct Cost {
    std::int64_t bytes = -1;  // the size for which this was computed; transfers of a pair have few sizes
    std::int64_t beside = 0;  // and the bytes of its whole message
    std::int64_t link_hops = 0;
    Time duration = 0;
  };
  void enter_rounds(std::uint32_t member, Time at, std::uint32_t collective, std::vector<network::Exit>& exits);
  const Cost& cost_of(const network::Transport& transport, std::uint32_t node);
  Time message_ps(const network::Transport& transport, std::uint32_t node, std::uint32_t end) const;
  void satisfy(std::uint32_t node, Time at) {
    ready_at_[node] = std::max(ready_at_[node], at);
    if (--waits_[node] == 0) ready_nodes_.push_back(node);
  }

  std::shared_ptr<const collective::Dag> dag_;
  std::shared_ptr<const Paths> paths_;
  std::vector<Cost> costs_;                 // by pair
  std::vector<std::uint16_t> waits_;        // by node: number of unknown predecessors, as in Dag::waits
  std::vector<Time> ready_at_;              // by node, or of the first round: the latest end of its known predecessors
  std::vector<std::uint32_t> remaining_;    // by member: number of its transfers whose end is unknown
  std::vector<Time> exit_times_;            // by member: the latest end of its known transfers
  std::vector<std::uint32_t> ready_nodes_;  // scratch of enter(): nodes whose predecessors are all known
  std::uint32_t pending_exits_;             // number of members whose exit is unknown
  std::uint32_t outside_;                   // of repeated rounds: members that have not entered
  Time last_activity_ = 0;
  std::int64_t link_hops_ = 0;
};

/// Returns the rounds of a DAG, or nothing if they are not alike.
std::optional<RepeatedRounds> repeated_rounds_of(const collective::Dag& dag, const CriticalPaths::Paths& paths,
                                                 const network::Transport& transport);

/// Returns the links of each of the routes of a DAG's pairs.
CriticalPaths::Paths paths_of(const collective::Dag& dag, const std::vector<network::Route>& routes,
                              const network::Graph& graph);
/// The same, with the rates that hops have for packets that take several links there (Connections::rates).
CriticalPaths::Paths paths_of(const collective::Dag& dag, const Connections& connections, const network::Graph& graph);

}  // namespace manyworlds::core::step
