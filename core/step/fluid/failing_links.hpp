// Cables of a step that fail while it is under way, and the routes that its collectives have then: those from the
// beginning until switches have routed around what failed, and new ones afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/step/compile/compiled_step.hpp"

namespace manyworlds::core::step {

/// The state of the fabric at one instant of a step. A copy goes on by itself.
class FailingLinks {
 public:
  /// Of all ranks, on pinned paths. `compiled` must outlive this.
  explicit FailingLinks(const CompiledStep& compiled);

  bool any() const { return !failures().cables.empty(); }
  /// Returns the next instant at which a cable fails or routes change; kNever if there is none.
  Time next_change() const;
  /// Goes on to that instant.
  void change();

  /// Whether a collective cannot go on: one of its connections goes over a cable that has failed.
  bool blocks(CollectiveOpId id);
  /// Returns the number of times that routes have changed, and the routes of an operation since the last of them. Those
  /// that nothing has happened to are what they were: of several next hops that are left, the choice is made anew.
  std::uint32_t epoch() const { return epoch_; }
  const std::shared_ptr<const Connections>& routes(CollectiveOpId id);

  /// Returns when senders that have lost what they sent at `lost` go on, if there are routes from `now` on: with their
  /// first retransmission then, or at once if they have no timeout.
  Time resumption(Time lost, Time now) const;

 private:
  const LinkFailures& failures() const { return compiled_.configuration().failures; }
  network::Router& router();

  const CompiledStep& compiled_;
  std::vector<std::uint32_t> order_;         // cables by the time of their failure
  std::uint32_t failed_ = 0, epoch_ = 0;     // of order_: how many have failed, and are avoided
  std::vector<bool> is_dead_;                // by link
  std::vector<std::uint32_t> links_;         // by link of the router's graph: that of the step's
  std::shared_ptr<network::Router> router_;  // without the cables that are avoided; null before it is asked
  std::map<CollectiveOpId, std::shared_ptr<const Connections>> routes_;  // of this epoch, those asked for
  std::map<CollectiveOpId, bool> blocked_;                               // since the last change, those asked for
};

}  // namespace manyworlds::core::step
