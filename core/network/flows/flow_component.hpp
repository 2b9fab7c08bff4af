// What decomposed flows keep: links and routes with the states in which flows begin there, components and when these
// complete, and flows that start.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/flows.hpp"

namespace manyworlds::core::network {

/// Appends what distinguishes a link in the key of a component.
void append_spec(StateWords& words, const LinkSpec& spec);

class FlowRoutes {
 public:
  std::uint32_t add_link(const LinkSpec& spec);
  /// Adds a route over links of add_link(). Routes whose links have equal specs share their initial states.
  std::uint32_t add(const Route& route);
  /// Adds the links and routes of `other`, numbered on from those known so far.
  void append(const FlowRoutes& other);

  const std::vector<LinkSpec>& specs() const { return specs_; }
  std::uint32_t routes() const { return static_cast<std::uint32_t>(routes_.size()); }
  const Route& links_of(std::uint32_t route) const { return routes_[route].links; }
  /// Returns the state of a single flow of `bytes` bytes that has just started.
  std::shared_ptr<const State> fresh(std::uint32_t route, std::int64_t bytes, ComponentCache& cache);

 private:
  struct RoutedShape {
    Route links;
    std::uint32_t shape;
  };
  std::vector<LinkSpec> specs_;
  std::vector<RoutedShape> routes_;
  std::map<StateWords, std::uint32_t> shapes_;
  std::vector<std::vector<std::pair<std::int64_t, std::shared_ptr<const State>>>> fresh_;  // by shape: (bytes, state)
};

/// A connected component of flows.
struct FlowComponent {
  Time state_time = 0;  // the time at which it was in `state`
  std::shared_ptr<const State> state;
  std::shared_ptr<const Outcome> next;  // the outcome of `state` without a time limit; null until it is needed
  std::shared_ptr<AheadTask> begun;     // what helpers may do of that before
  std::vector<FlowId> flows;            // indexed by flow number in the state
  std::vector<std::uint32_t> links;     // indexed by link number in the state
  std::int64_t credit = 0;              // time saved by the cache minus its cost, limited to kMaxDebt
  std::uint32_t generation = 0;         // number of earlier uses of this slot, to recognise outdated completions
  bool live = false;
};

/// The next completion in a component; until it is known, the earliest time that it can have.
struct Completion {
  Time at;
  std::uint32_t component, generation;
  bool operator>(const Completion& other) const { return at != other.at ? at > other.at : component > other.component; }
};

struct PendingStart {
  FlowId id;
  std::uint32_t route;
  std::int64_t bytes;
  std::uint32_t group;  // a component slot; starts with the same root in group_ belong to one component
};

/// The states of components at now() and the flows that start in them. Flows and links are indexed by their slot in
/// an engine that loads the states, adds the fresh links and starts the flows in this order.
struct JoinProblem {
  std::vector<std::shared_ptr<const State>> states;
  std::vector<Route> routes;    // routes of the new flows, by link slot
  std::vector<LinkSpec> fresh;  // links that are in none of the states
  std::vector<FlowId> ids;
  std::vector<std::uint32_t> links;
  std::vector<std::uint64_t> orders;
  std::int64_t credit = 0;
  StateWords words;  // canonical description of the join: the cache key
};

}  // namespace manyworlds::core::network
