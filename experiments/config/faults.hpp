// What is broken in a cluster, as data: cables that are down, cables and GPUs that run at a share of their rate. Cables
// are named by their ends, as in leaf0-spine1; a single switch or GPU stands for all its cables.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/options.hpp"
#include "core/network/fabric/graph.hpp"

namespace manyworlds::experiments {

struct Faults {
  std::string down;       // "leaf0-spine1, spine3, gpu3-rail3#0"
  std::string slow;       // "leaf0-spine2=0.5"
  std::string slow_gpus;  // "gpu3=0.8, node1=0.9"
  /// Of the fabric.
  bool none() const { return down.empty() && slow.empty(); }
};

const core::OptionTable<Faults>& fault_options();

/// Takes the cables that are down out of `graph` and slows those that are slow. NAME-NAME means all parallel cables
/// between the two, NAME-NAME#N the N-th of them, counted from 0. Throws core::InputError for what does not exist or is
/// named twice, for a share that is none, and for faults that leave two GPUs without a path.
void apply(const Faults& faults, core::network::Graph& graph);

/// GPUs whose kernels run at a share of their rate, by number, and that share: what stands in `slow_gpus`, a node for
/// all of its GPUs. Throws core::InputError for what does not exist or is named twice, and for a share that is none.
std::map<std::int64_t, double> slow_gpus(const Faults& faults, std::int64_t nodes, std::int64_t gpus_per_node);

}  // namespace manyworlds::experiments
