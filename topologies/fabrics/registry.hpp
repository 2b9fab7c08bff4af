// All fabrics, as one explicit list. A new fabric needs a new file and a line in registry.cpp.
#pragma once

#include <vector>

#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

/// Returns all fabrics, in the order in which `manyworlds list` shows them.
const std::vector<Topology>& registry();

}  // namespace manyworlds::topologies
