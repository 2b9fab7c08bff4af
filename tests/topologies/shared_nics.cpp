// NICs that GPUs share, in front of every fabric.
#include "topologies/parts/shared_nics.hpp"

#include <catch2/catch.hpp>

#include "tests/topologies/graph_facts.hpp"

namespace {

using namespace manyworlds::core::network;
using namespace manyworlds::topologies;
using manyworlds::core::compute::ScaleUp;

constexpr std::int64_t kHost = 512'000'000'000;

FabricSpec shared_site(std::int64_t nodes, std::int64_t gpus, std::int64_t nics) {
  FabricSpec spec = tests::fabric_spec_of(nodes, gpus, ScaleUp::nvswitch);
  spec.shared_nics = nics;
  spec.host_bits_per_second = kHost;
  return spec;
}

std::vector<std::uint32_t> nics_of(const Graph& graph, std::uint32_t gpu) {
  std::vector<std::uint32_t> nics;
  for (const Link& link : graph.links)
    if (link.from == gpu && link.kind == LinkKind::network) nics.push_back(link.to);
  return nics;
}

}  // namespace

TEST_CASE("behind every fabric GPUs share the NICs of their node in order, and all are joined") {
  for (const Topology& topology : tests::fabrics())
    for (const std::int64_t nics : {1, 2, 4}) {
      INFO(topology.name << ", NICs of a node: " << nics);
      const FabricSpec spec = shared_site(16, 8, nics);
      const Graph graph = build_fabric(topology, {}, spec);
      REQUIRE(graph.gpus == 128);
      for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) {
        const auto mine = nics_of(graph, gpu);
        REQUIRE(mine.size() == 1);
        CHECK(graph.vertices[mine.front()] == VertexKind::nic);
        CHECK(graph.names[mine.front()] == fmt::format("nic{}", gpu / 8 * nics + gpu % 8 * nics / 8));
      }
      CHECK(
          tests::connected(graph, LinkKind::scale_up, [](std::uint32_t a, std::uint32_t b) { return a / 8 == b / 8; }));
      // No two GPUs of a node talk over the NIC that they share.
      Router router(std::make_shared<const Graph>(graph), Routing::destination_mod_k, 0);
      for (const std::uint32_t other : {1u, 7u})
        for (const std::uint32_t link : router.route(0, other, 0)) CHECK(graph.links[link].kind == LinkKind::scale_up);
    }
}

TEST_CASE("a fabric in front of shared NICs is the fabric of as many hosts") {
  const Topology& rails = registry().at(2);
  REQUIRE(rails.name == "rail_optimized");
  const Graph shared = build_fabric(rails, {}, shared_site(4, 8, 2));
  const Graph hosts = rails.build({}, tests::fabric_spec_of(4, 2, ScaleUp::nvswitch));
  const auto switches = [](const Graph& graph) {
    return std::count(graph.vertices.begin(), graph.vertices.end(), VertexKind::network_switch);
  };
  const auto cables = [](const Graph& graph) {
    return std::count_if(graph.links.begin(), graph.links.end(), [&](const Link& link) {
      return link.kind == LinkKind::network && link.from >= graph.gpus && link.to >= graph.gpus;
    });
  };
  CHECK(switches(shared) == switches(hosts));
  std::ptrdiff_t host_links = 0;
  for (const Link& link : hosts.links) host_links += link.kind == LinkKind::network ? 1 : 0;
  CHECK(cables(shared) == host_links);
  CHECK(build_fabric(rails, {}, tests::fabric_spec_of(4, 8, ScaleUp::nvswitch)).links ==
        rails.build({}, tests::fabric_spec_of(4, 8, ScaleUp::nvswitch)).links);
}

TEST_CASE("PCIe trees and bridged pairs: the bridge first, then the switch, then the root") {
  for (const ScaleUp scale_up : {ScaleUp::pcie, ScaleUp::nvlink_pairs}) {
    FabricSpec spec = tests::fabric_spec_of(2, 8, scale_up);
    spec.host_bits_per_second = kHost;
    const auto graph = std::make_shared<const Graph>(tests::build("one_switch", {}, spec));
    Router router(graph, Routing::destination_mod_k, 0);
    const auto hops = [&](std::uint32_t a, std::uint32_t b) {
      std::vector<std::string> names;
      for (const std::uint32_t link : router.route(a, b, 0)) {
        names.push_back(graph->names[graph->links[link].to]);
        const std::int64_t rate = graph->links[link].bits_per_second;
        const bool bridge = scale_up == ScaleUp::nvlink_pairs && names.size() == 1 && names[0] == "gpu1";
        if (graph->links[link].kind == LinkKind::scale_up)
          CHECK(rate == (scale_up == ScaleUp::pcie || bridge ? tests::kScaleUp : kHost));
      }
      return names;
    };
    using Names = std::vector<std::string>;
    CHECK(hops(0, 1) == (scale_up == ScaleUp::pcie ? Names{"pcie0", "gpu1"} : Names{"gpu1"}));
    CHECK(hops(0, 2) == Names{"pcie0", "gpu2"});
    CHECK(hops(1, 6) == Names{"pcie0", "root0", "pcie1", "gpu6"});
    CHECK(hops(9, 15) == Names{"pcie2", "root1", "pcie3", "gpu15"});
    CHECK(hops(0, 8).size() == 2);  // over the NICs
  }
}
