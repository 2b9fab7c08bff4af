// An isolated collective: all members enter at once and nothing else uses its links.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/sharing/key.hpp"
#include "core/step/compile/compiled_step.hpp"

namespace manyworlds::core::step {

struct IsolatedResult {
  std::vector<Time> exits;  // by member, relative to the common entry
  Time drained = 0;         // time at which nothing of it is left in the network
  network::Counters counters;
};

/// Simulates an isolated collective on the flows of `cache`, or computes its critical paths under other fidelities than
/// packet. Throws core::InputError if it deadlocks.
IsolatedResult simulate_isolated(const collective::Dag& dag, const Connections& connections,
                                 const network::Graph& graph, network::ComponentCache& cache);

/// Returns the critical paths of an isolated collective, as under analytic fidelity.
IsolatedResult uncontended(const collective::Dag& dag, const Connections& connections, const network::Graph& graph,
                           const network::Transport& transport);

/// Returns the result of all ranks of an operation from that of its DAG, whose members may stand for several each.
IsolatedResult of_all_ranks(IsolatedResult of_members, const CollectiveOp& collective_op);

std::string encode(const IsolatedResult& result);
/// Throws core::InternalError on bytes that encode() did not write.
IsolatedResult decode_isolated(std::string_view bytes);

}  // namespace manyworlds::core::step
