// Routes on every registered fabric against the plain oracle.
#include <catch2/catch.hpp>

#include "core/base/error.hpp"
#include "tests/core/network/plain_router.hpp"
#include "tests/topologies/graph_facts.hpp"

using namespace manyworlds::core::network;
using manyworlds::core::compute::ScaleUp;
using manyworlds::topologies::FabricSpec;
using manyworlds::topologies::Topology;

TEST_CASE("routes on every fabric are those of one Dijkstra per destination") {
  for (const Topology& topology : manyworlds::topologies::tests::fabrics())
    for (const ScaleUp scale_up : {ScaleUp::nvswitch, ScaleUp::full_mesh}) {
      const FabricSpec spec = manyworlds::topologies::tests::fabric_spec_of(16, 4, scale_up);
      const Graph graph = topology.build({}, spec);
      INFO(topology.name << (scale_up == ScaleUp::nvswitch ? ", NVSwitch" : ", full mesh"));
      CHECK(tests::differing_routes(graph, Routing::destination_mod_k, 7).empty());
      CHECK(tests::differing_routes(graph, Routing::ecmp_hash, 7).empty());
    }
}
