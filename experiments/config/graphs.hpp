// Fabrics by what they depend on, so that experiments on the same fabric share one graph. Whoever wants the sharing
// owns the cache; it is not for several threads at once.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/network/fabric/graph.hpp"
#include "experiments/config/world.hpp"

namespace manyworlds::experiments {

/// Of the rate of the links between nodes, what the communication library reaches; 1 where it is not calibrated.
double nic_share(const World& world);

class GraphCache {
 public:
  /// Throws InputError where topology and site do not fit together.
  std::shared_ptr<const core::network::Graph> get(const World& world);

 private:
  std::map<std::string, std::shared_ptr<const core::network::Graph>> graphs_;
};

}  // namespace manyworlds::experiments
