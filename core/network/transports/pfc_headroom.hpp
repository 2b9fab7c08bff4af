// The check that the switch buffers suffice for a lossless fabric.
#pragma once

#include "core/network/fabric/graph.hpp"
#include "core/network/fabric/transport.hpp"

namespace manyworlds::core::network {

/// Checks that a transport with PFC never drops on this graph: every ingress buffer must hold the XOFF threshold plus
/// the headroom, the bytes that still arrive until the pause takes effect. Throws InputError with the buffer size
/// needed. Does nothing for lossy and trimming transports.
void check_pfc_headroom(const Graph& graph, const Transport& transport);

}  // namespace manyworlds::core::network
