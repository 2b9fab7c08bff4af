// Buffers that keep a fabric lossless.
#pragma once

#include "core/network/fabric/graph.hpp"
#include "core/network/fabric/transport.hpp"

namespace manyworlds::core::network {

/// Refuses a transport that would have to drop on this graph: every ingress buffer must hold xoff plus what is
/// still on its way when the pause takes effect. Throws InputError saying which buffer would do.
void check_lossless(const Graph& graph, const Transport& transport);

}  // namespace manyworlds::core::network
