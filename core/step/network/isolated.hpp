// A collective on its own: all members enter at once and nothing else is on its links.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/network/flows/memo.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/sharing/key.hpp"
#include "core/step/world/world.hpp"

namespace manyworlds::core::step {

struct IsolatedResult {
  std::vector<Time> exits;  // by member, after the common entry
  Time drained = 0;         // nothing of it is left in the network
  network::Counters counters;
};

/// Simulates it on divided flows with `memo`.
IsolatedResult simulate_isolated(const collective::Dag& dag, const Connections& connections,
                                 const network::Graph& graph, network::Memo& memo);

std::string encode(const IsolatedResult& result);
/// Throws InternalError on bytes that encode() did not make.
IsolatedResult decode_isolated(std::string_view bytes);

}  // namespace manyworlds::core::step
