// Cables of a step of fluids that fail while it is under way, and the routes that its collectives have then: those from
// the beginning until switches have routed around what failed, and new ones afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "core/network/fabric/failing_cables.hpp"
#include "core/step/compile/compiled_step.hpp"

namespace manyworlds::core::step {

/// The state of the fabric at one instant of a step. A copy goes on by itself.
class FailingLinks {
 public:
  /// Of all ranks, on pinned paths. `compiled` must outlive this.
  explicit FailingLinks(const CompiledStep& compiled);

  /// Returns the next instant at which a cable fails or routes change; kNever if there is none.
  Time next_change() const { return cables_.next_change(); }
  /// Goes on to that instant.
  void change();

  /// Whether a collective cannot go on: one of its connections goes over a cable that has failed.
  bool blocks(CollectiveOpId id);
  /// Returns the number of times that routes have changed, and the routes of an operation since the last of them. Those
  /// that nothing has happened to are what they were: of several next hops that are left, the choice is made anew.
  std::uint32_t epoch() const { return cables_.epoch(); }
  const std::shared_ptr<const Connections>& routes(CollectiveOpId id);

  /// Returns when senders that have lost what they sent at `lost` go on, if there are routes from `now` on: with their
  /// first retransmission then, or at once if they have no timeout.
  Time resumption(Time lost, Time now) const;

 private:
  const CompiledStep& compiled_;
  network::FailingCables cables_;
  std::map<CollectiveOpId, std::shared_ptr<const Connections>> routes_;  // of this epoch, those asked for
  std::map<CollectiveOpId, bool> blocked_;                               // since the last change, those asked for
};

}  // namespace manyworlds::core::step
