// The network model under fluid fidelity: collectives share links max-min fairly, without packets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

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
  /// Returns the contended collectives that have ended, in the order of their ends.
  virtual const std::vector<ContendedCollective>& contended() const = 0;
  /// From now on every collective that is short of a link takes longer by this share, in millionths, while it is.
  virtual void slow_contended(std::int64_t ppm) = 0;
};
/// `packets` is a cache of the step's transport at packet fidelity, with which its efficiency is measured.
std::unique_ptr<FluidNetwork> make_fluid(const CompiledStep& compiled, const IsolatedResults& results,
                                         network::ComponentCache& packets);

}  // namespace manyworlds::core::step
