// Cables of a fabric that fail while something is simulated on it, and the routes that are left: those of the whole
// fabric until switches have routed around what failed, and those of the fabric without it afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "core/network/fabric/router.hpp"

namespace manyworlds::core::network {

struct LinkFailures {
  struct Cable {
    std::uint32_t link = 0;  // one direction; the other is the next higher or lower number
    Time at = 0;             // since the begin of the simulation
    bool operator==(const Cable&) const = default;
  };
  std::vector<Cable> cables;
  Time reconvergence_ps = 0;  // from a failure until routes avoid the cable
  Time retransmit_ps = 0;     // timeout of senders, from the loss on; 0: they go on as soon as there is a route
  bool operator==(const LinkFailures&) const = default;
};

/// What is left of a fabric: a graph with fewer links, and by its links their numbers in the whole one.
struct RemainingFabric {
  std::shared_ptr<const Graph> graph;
  std::vector<std::uint32_t> links;
};

/// The state of the cables at one instant. A copy goes on by itself. Not thread-safe.
class FailingCables {
 public:
  FailingCables(const LinkFailures& failures, std::shared_ptr<const Graph> graph, const PathChoice& choice);

  bool any() const { return !cables_.empty(); }
  /// Returns the next instant at which a cable fails or routes change; kNever if there is none.
  Time next_change() const;
  /// Goes on to that instant. Appends the links that fail then, both of each cable.
  void change(std::vector<std::uint32_t>& failed);

  bool is_dead(std::uint32_t link) const { return is_dead_[link]; }
  /// Whether a cable has failed that routes do not avoid yet.
  bool waits_for_routes() const { return failed_ != epoch_; }
  /// Returns how many of the cables routes avoid. It rises when routes change.
  std::uint32_t epoch() const { return epoch_; }
  /// Returns the fabric without the cables that routes avoid.
  const RemainingFabric& left();
  /// Returns the routing of left(), in its numbering.
  Router& router();
  /// Renumbers a route of router(): its links get their numbers in the whole fabric.
  void rename(Route& route);

 private:
  std::shared_ptr<const Graph> graph_;
  PathChoice choice_;
  std::vector<LinkFailures::Cable> cables_;  // by the time of their failure
  Time reconvergence_ps_ = 0;
  std::uint32_t failed_ = 0, epoch_ = 0;  // of cables_: how many have failed, and are avoided
  std::vector<bool> is_dead_;             // by link; empty if no cable fails
  RemainingFabric left_;                  // null before it is asked for
  std::shared_ptr<Router> router_;        // the same
};

}  // namespace manyworlds::core::network
