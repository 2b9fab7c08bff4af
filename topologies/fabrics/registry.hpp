// The fabrics we know, as one explicit list. Adding one is a new file and a line in registry.cpp.
#pragma once

#include <vector>

#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

const std::vector<Topology>& registry();

}  // namespace manyworlds::topologies
