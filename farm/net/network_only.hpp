// Simulates flows or one collective on a fabric, without a training step: the work of `manyworlds net`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/work_ahead.hpp"
#include "core/collective/dag/dag.hpp"
#include "core/network/engine/link_hops.hpp"
#include "core/network/flows/flows.hpp"
#include "core/step/layout/configuration.hpp"
#include "experiments/import/flows.hpp"

namespace manyworlds::farm {

struct NetworkRun {
  std::vector<core::Time> starts, ends;  // per flow in input order, or per member of the collective
  // When each sender received its last acknowledgement, per flow; empty unless acknowledgements are simulated as
  // packets, and if cables fail and one was lost.
  std::vector<core::Time> acknowledged;
  std::vector<core::network::LinkLoad> loads;  // by link of the graph
  core::Time carried_ps = 0;                   // duration that `loads` refer to: until all links were empty
  core::network::Counters counters;            // totals over all packets
  core::network::LinkHops computed;            // link-hops not taken from the cache of an equal component
  double cpu_s = 0;
  core::Time end() const;      // the maximum of `ends`
  core::Time elapsed() const;  // from the minimum of `starts` to end()
};

/// Simulates `flows`. With `plain`, all packets share one event loop (the oracle); otherwise flows are decomposed into
/// components, whose results are cached, and which helpers, if there are any, simulate ahead. The times are equal.
/// Throws core::InputError for a transport that would have to drop packets, for sizes that no packet number can count,
/// and for PFC deadlocks.
NetworkRun run_flows(const core::step::Configuration& configuration,
                     const std::vector<experiments::import::Flow>& flows, bool plain,
                     core::HelperThreads* helpers = nullptr);

/// Simulates a collective whose members all enter at time 0; member i is GPU i.
NetworkRun run_collective(const core::step::Configuration& configuration, const core::collective::Shape& shape,
                          bool plain, core::HelperThreads* helpers = nullptr);

/// Nearest-rank percentiles, extremes and mean of completion times, in picoseconds.
struct CompletionTimes {
  core::Time min = 0, p50 = 0, p99 = 0, max = 0;
  double mean = 0;
};
CompletionTimes completion_times_of(const NetworkRun& run);
/// Returns the same of the last acknowledgements; `run.acknowledged` must not be empty.
CompletionTimes acknowledgement_times_of(const NetworkRun& run);

}  // namespace manyworlds::farm
