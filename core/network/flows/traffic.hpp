// Collectives over flows: members enter, transfers start as their DAG allows, members exit.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/network/flows/flows.hpp"

namespace manyworlds::core::network {

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
  /// Routes for the pairs of a DAG, over links of add_link(), which any number of collectives may use. Returns their
  /// number.
  std::uint32_t add_routes(const std::vector<Route>& routes);
  /// Adds a collective over routes of add_routes(), one for each of dag->pairs. Returns its number. Its rank in ties
  /// follows by add_rank() or set_ranks(), before anyone enters.
  std::uint32_t add(std::shared_ptr<const collective::Dag> dag, std::uint32_t routes);
  std::uint32_t add(std::shared_ptr<const collective::Dag> dag, const std::vector<Route>& routes) {
    return add(std::move(dag), add_routes(routes));
  }
  void add_rank(std::uint32_t rank) { flows_->add_rank(rank); }
  void set_ranks(const std::vector<std::uint32_t>& rank_of_collective) { flows_->set_ranks(rank_of_collective); }

  /// A member enters at now(); its first transfers may begin Dag::launch_ps later.
  void enter(std::uint32_t collective, std::uint32_t member);
  /// Goes on to the first instant with exits, at most to `limit`; appends them (ascending).
  void advance(Time limit, std::vector<Exit>& exits);

  /// As Flows::standstill().
  PauseWaits standstill() const { return flows_->standstill(); }

  Time now() const { return flows_->now(); }
  /// No transfer is under way and none will start unless somebody enters.
  bool drained() const { return later_.empty() && flows_->drained(); }
  Time quiet_since() const { return flows_->quiet_since(); }
  const Counters& counters() const { return flows_->counters(); }
  std::vector<LinkLoad> loads() const { return flows_->loads(); }

 private:
  struct Running {
    std::shared_ptr<const collective::Dag> dag;
    std::uint32_t routes = 0;
    std::vector<std::uint16_t> waits;      // by node, as Dag::waits, what is still missing
    std::vector<std::uint32_t> remaining;  // by member: unfinished transfers it takes part in
    std::vector<bool> entered;             // by member
    std::uint32_t inside = 0;              // members that have not exited
  };

  /// A member whose launch is over, or a transfer whose delay is.
  struct Later {
    Time at = 0;
    bool is_entry = false;
    FlowId what;  // (collective, member) or (collective, transfer)
    auto operator<=>(const Later&) const = default;
  };

  Running& running(std::uint32_t collective) { return running_[slot_of_[collective]]; }
  void open(FlowId member);
  void satisfy(std::uint32_t collective, std::uint32_t node);
  void start(FlowId id);
  void postpone(const Later& what);
  void start_due();
  void finish(FlowId id, std::vector<Exit>& exits);

  std::unique_ptr<Flows> flows_;
  std::vector<std::vector<std::uint32_t>> routes_;  // of the flows, by pair
  std::vector<Running> running_;                    // in slots, so that what is over takes no room
  std::vector<std::uint32_t> slot_of_, free_;       // of each collective; none once it is over
  std::vector<Later> later_;                        // a heap, the earliest first
  std::vector<FlowId> finished_;
};

}  // namespace manyworlds::core::network
