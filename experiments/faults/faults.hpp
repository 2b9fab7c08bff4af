// Faults of a cluster as data: cables that are down, cables that fail while a step is under way, and cables and GPUs
// that run at a share of their rate. A cable is
// named by its ends, as in leaf0-spine1; the name of a single switch or GPU means all of its cables.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/options.hpp"
#include "core/network/fabric/graph.hpp"
#include "core/step/layout/configuration.hpp"

namespace manyworlds::experiments {

struct Faults {
  std::string down;          // "leaf0-spine1, spine3, gpu3-rail3#0"
  std::string slow;          // "leaf0-spine2=0.5"
  std::string slow_gpus;     // "gpu3=0.8, node1=0.9"
  std::string fails = {};    // "leaf0-spine1@2ms"
  double reconverge_us = 0;  // from such a failure until routes avoid the cable
  double retransmit_us = 0;  // timeout of senders; 0: they go on as soon as there is a route
  /// Returns whether the fabric has no fault when the step begins; slow GPUs do not count.
  bool fabric_is_intact() const { return down.empty() && slow.empty(); }
};

const core::OptionTable<Faults>& fault_options();

/// Removes from `graph` the cables that are down and slows the slow ones. NAME-NAME means all parallel cables between
/// the two, NAME-NAME#N the N-th of them, counted from 0. Throws core::InputError for names that do not exist or occur
/// twice, for an invalid share, and for faults that leave two GPUs without a path.
void apply_faults(const Faults& faults, core::network::Graph& graph);

/// Returns the cables of `graph`, to which the other faults have been applied, that fail while the step is under way.
/// They are named as in apply_faults(), with the time since the begin of the step: leaf0-spine1@2ms, in us, ms or s.
/// Throws core::InputError for names that do not exist or occur twice, for an invalid time, and if failures leave two
/// GPUs without a path.
core::step::LinkFailures failures_of(const Faults& faults, const core::network::Graph& graph);

/// Returns the GPUs that `slow_gpus` lists, by number, with the share of their rate at which their kernels run; the
/// name of a node means all of its GPUs. Throws core::InputError for names that do not exist or occur twice, and for an
/// invalid share.
std::map<std::int64_t, double> slow_gpus(const Faults& faults, std::int64_t nodes, std::int64_t gpus_per_node);

}  // namespace manyworlds::experiments
