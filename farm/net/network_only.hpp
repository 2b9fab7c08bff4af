// Flows or one collective on a fabric, with nothing else in the world: what `manyworlds net` simulates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/network/engine/link_hops.hpp"
#include "core/network/flows/flows.hpp"
#include "core/step/world/configuration.hpp"
#include "experiments/import/flows.hpp"

namespace manyworlds::farm {

struct NetworkRun {
  std::vector<core::Time> starts, ends;  // of each flow in its order; of a collective's members
  // Of each flow if acknowledgements are packets: when its sender had the last one; else empty.
  std::vector<core::Time> acknowledged;
  std::vector<core::network::LinkLoad> loads;  // by link of the graph
  core::Time carried_ps = 0;                   // the time that loads are of: until nothing was left on any link
  core::network::Counters counters;            // of what took place
  core::network::LinkHops computed;            // of these, not remembered from an equal cluster of flows
  double cpu_s = 0;
  core::Time end() const;      // the last of `ends`
  core::Time elapsed() const;  // from the first of `starts` to there
};

/// `plain`: every packet in one event loop (the oracle); otherwise divided and remembered. The times are the same.
/// Throws InputError for a transport that would have to drop, for sizes no packet number can count, and for pauses that
/// hold each other for ever.
NetworkRun run_flows(const core::step::Configuration& world, const std::vector<experiments::import::Flow>& flows,
                     bool plain);

/// All members enter at once; member i is GPU i.
NetworkRun run_collective(const core::step::Configuration& world, const core::collective::Shape& shape, bool plain);

/// Nearest-rank percentiles, extremes and mean of completion times, in picoseconds.
struct Completion {
  core::Time min = 0, p50 = 0, p99 = 0, max = 0;
  double mean = 0;
};
Completion completion_of(const NetworkRun& run);
/// The same of the last acknowledgements, of a run that has them.
Completion acknowledgement_of(const NetworkRun& run);

}  // namespace manyworlds::farm
