// A collective under fidelity analytic: a transfer takes what it takes alone (core/network/flows/analytic_flows.cpp),
// so when members leave follows from when they enter by the longest ways through the DAG. Nothing waits for events in
// order of time: each transfer is looked at once, as soon as all before it are known.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/flows/traffic.hpp"

namespace manyworlds::core::step {

class LongestWays {
 public:
  /// The links of each of dag->pairs.
  using Paths = std::vector<std::vector<network::LinkSpec>>;

  LongestWays(std::shared_ptr<const collective::Dag> dag, std::shared_ptr<const Paths> paths);

  /// A member enters at `at`, not before those that entered already; appends the exits that are known now, which lie
  /// later, in no order. They are `collective`'s.
  void enter(const network::Transport& transport, std::uint32_t member, Time at, std::uint32_t collective,
             std::vector<network::Exit>& exits);

  /// Whether all exits are known.
  bool over() const { return inside_ == 0; }
  /// When the last transfer that is known has finished.
  Time quiet_since() const { return quiet_since_; }
  std::int64_t link_hops() const { return link_hops_; }

 private:
  struct Cost {
    std::int64_t bytes = -1;  // of which it is: transfers of a connection have few sizes
    std::int64_t link_hops = 0;
    Time takes = 0;
  };
  const Cost& cost_of(const network::Transport& transport, const collective::Transfer& what);
  void satisfy(std::uint32_t node, Time at) {
    ready_[node] = std::max(ready_[node], at);
    if (--waits_[node] == 0) open_.push_back(node);
  }

  std::shared_ptr<const collective::Dag> dag_;
  std::shared_ptr<const Paths> paths_;
  std::vector<Cost> costs_;               // by pair
  std::vector<std::uint16_t> waits_;      // by node, as Dag::waits, what is still unknown
  std::vector<Time> ready_;               // by node: when what is known of those before it is over
  std::vector<std::uint32_t> remaining_;  // by member: transfers it takes part in that are not known
  std::vector<Time> leaves_;              // by member, as far as it is known
  std::vector<std::uint32_t> open_;       // nodes that all before are known of, while a member enters
  std::uint32_t inside_;                  // members whose exit is not known
  Time quiet_since_ = 0;
  std::int64_t link_hops_ = 0;
};

}  // namespace manyworlds::core::step
