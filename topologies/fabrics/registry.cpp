// The list of fabrics: one line each, in the order in which `manyworlds list` shows them.
#include "topologies/fabrics/registry.hpp"

namespace manyworlds::topologies {

// clang-format off
#define MANYWORLDS_TOPOLOGIES(entry) \
  entry(one_switch)                  \
  entry(fat_tree)                    \
  entry(rail_optimized)              \
  entry(rail_only)                   \
  entry(hpn)                         \
  entry(dragonfly)                   \
  entry(dragonfly_plus)              \
  entry(torus)                       \
  entry(mesh)                        \
  entry(hypercube)                   \
  entry(bcube)                       \
  entry(full_mesh)                   \
  entry(graph)
// clang-format on

#define MANYWORLDS_DECLARE(name) Topology name();
MANYWORLDS_TOPOLOGIES(MANYWORLDS_DECLARE)

const std::vector<Topology>& registry() {
#define MANYWORLDS_CALL(name) name(),
  static const std::vector<Topology> all{MANYWORLDS_TOPOLOGIES(MANYWORLDS_CALL)};
  return all;
}

}  // namespace manyworlds::topologies
