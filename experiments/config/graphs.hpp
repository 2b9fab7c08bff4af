// Cache of fabrics by what they depend on, so that experiments on the same fabric share one graph. The caller owns the
// cache; it is not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/network/fabric/graph.hpp"
#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

/// Returns the share of the rate between nodes that the communication library reaches; 1 if it is not calibrated.
double nic_share(const ExperimentConfig& config);

/// Returns the share of the scale-up links' rates that the communication library reaches; 1 unless it is calibrated.
double link_share(const ExperimentConfig& config);

class GraphCache {
 public:
  /// Returns the graph of `config`. Throws InputError if the topology does not fit the cluster.
  std::shared_ptr<const core::network::Graph> get(const ExperimentConfig& config);

 private:
  /// What a graph depends on, for the one that was returned last: most experiments of a sweep want it again.
  struct Source {
    std::string topology, down, slow, hosts;
    core::OptionSet options;
    topologies::FabricSpec spec;
    double nic_share = 1, link_share = 1;
    std::shared_ptr<const Inputs> inputs;

    bool is_of(const ExperimentConfig& config, const topologies::FabricSpec& fabric_spec) const;
  };

  std::shared_ptr<const core::network::Graph> find_or_build(const ExperimentConfig& config,
                                                            topologies::FabricSpec fabric_spec);

  std::map<std::string, std::shared_ptr<const core::network::Graph>> graphs_;
  std::optional<Source> last_;  // none: it depends on more, the rates of several kinds of machines
  std::shared_ptr<const core::network::Graph> last_graph_;
};

}  // namespace manyworlds::experiments
