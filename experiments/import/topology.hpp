// Topology files of SimAI (Alibaba's simulator of training clusters): a header, the numbers of the switches, and one
// cable per line with its rate and latency. docs/formats.md describes the format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::experiments::import {

struct TopologyFile {
  core::network::Graph graph;  // with GPUs numbered as in the file, server by server
  std::int64_t gpus_per_server = 0;
};

/// Parses a topology; `name` is the file name in messages. Throws InputError with the line for a malformed file and for
/// what cannot be simulated: an error rate above 0, two GPUs without a path, an NVSwitch that joins servers.
TopologyFile parse_topology(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
