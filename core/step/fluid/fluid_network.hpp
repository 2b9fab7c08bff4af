// The network model under fluid fidelity: collectives share links max-min fairly, without packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/step/fluid/transport_efficiency.hpp"
#include "core/step/network/network_model.hpp"

namespace manyworlds::core::step {

/// A collective that was slower than it would have been alone.
struct ContendedCollective {
  InstanceId instance;
  Time begin = 0;  // when its last member entered
  Time end = 0;    // when its last member left
};

class FluidNetwork : public KeyedNetwork {
 public:
  /// The end of what a run has in common with others: what follows depends on answers that it has not used before, or
  /// on how contended collectives are slowed.
  struct Fork {
    std::size_t answers = 0;          // of answers(): those before it
    bool is_after_contended = false;  // whether any collective has been short of a link before it
    bool begins_contention = false;   // whether the first is after it
  };
  /// From now on next_exit() calls `at_fork` where a clone() can go on differently.
  virtual void watch(std::function<void(const Fork&)> at_fork) = 0;
  /// Returns a copy in the same state, which nobody watches.
  virtual std::unique_ptr<FluidNetwork> clone() const = 0;
  /// Of a clone that was made at a fork: goes on with another transport, whose answers before it must be the same, and
  /// with other results, which must have all that it had. next_exit() comes to that fork again.
  virtual void go_on_with(TransportEfficiency& efficiency, const IsolatedResults& results, const Fork& fork) = 0;
  /// Returns all that this has read of its transport.
  virtual const std::vector<AskedEfficiencies::Answer>& answers() const = 0;
  /// Returns the contended collectives that have ended, in the order of their ends.
  virtual const std::vector<ContendedCollective>& contended() const = 0;
  /// From now on every collective that is short of a link takes longer by this share, in millionths, while it is.
  virtual void slow_contended(std::int64_t ppm) = 0;
};
/// `efficiency` is that of the step's transport, and must outlive the network as its other arguments must.
std::unique_ptr<FluidNetwork> make_fluid(const CompiledStep& compiled, const IsolatedResults& results,
                                         TransportEfficiency& efficiency);

}  // namespace manyworlds::core::step
