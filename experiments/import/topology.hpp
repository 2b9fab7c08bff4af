// Topology files of SimAI (Alibaba's simulator of training clusters): a header, the numbers of the switches, and one
// cable per line with its rate and latency. docs/formats.md describes the form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::experiments::import {

struct TopologyFile {
  core::network::Graph graph;  // GPUs as the file numbers them: server by server
  std::int64_t gpus_per_server = 0;
};

/// Throws InputError, with `name` and the line, for anything that is not such a file or that cannot be simulated: an
/// error rate, a GPU without a path to another, an NVSwitch that joins servers.
TopologyFile parse_topology(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
