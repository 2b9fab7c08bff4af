// Each fabric against its closed forms: switches, cables, and the bandwidth across the cut that oversubscription thins.
#include <catch2/catch.hpp>

#include "core/base/error.hpp"
#include "tests/topologies/graph_facts.hpp"

namespace {

using namespace manyworlds::core::network;
using namespace manyworlds::topologies;
using manyworlds::core::InputError;
using manyworlds::core::OptionSet;
using manyworlds::core::compute::ScaleUp;
using tests::kNic;

Graph built(const std::string& name, const OptionSet& options, std::int64_t nodes = 16,
            std::int64_t gpus_per_node = 8) {
  return tests::build(name, options, tests::fabric_spec_of(nodes, gpus_per_node, ScaleUp::nvswitch));
}

std::string refusal(const std::string& name, const OptionSet& options, std::int64_t nodes = 16) {
  try {
    built(name, options, nodes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::int64_t whole(std::int64_t value) {
  return value;
}

}  // namespace

TEST_CASE("one switch has a cable per GPU and nothing else") {
  const Graph graph = built("one_switch", {});
  CHECK(graph.vertices.size() == 128 + 16 + 1);
  CHECK(graph.links.size() == 2 * (128 + 128));
  CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu % 2 == 0; }) == 64 * kNic);
}

TEST_CASE("a full mesh node has a cable per pair and splits the rate of a GPU over its peers") {
  const Graph graph = tests::build("one_switch", {}, tests::fabric_spec_of(3, 8, ScaleUp::full_mesh));
  CHECK(graph.links.size() == 2 * (3 * 8 * 7 / 2 + 24));
  for (const Link& link : graph.links)
    if (link.kind == LinkKind::scale_up) CHECK(link.bits_per_second == tests::kScaleUp / 7);
}

TEST_CASE("a two-tier fat tree has hosts / oversubscription uplinks a leaf and that much bandwidth across its leaves") {
  struct Case {
    double oversubscription;
    std::int64_t uplinks;
  };
  for (const auto& [oversubscription, uplinks] :
       {Case{1, 32}, Case{2, 16}, Case{4, 8}, Case{32, 1}, Case{4. / 3, 24}, Case{1.6, 20}}) {
    INFO(oversubscription);
    const Graph graph = built("fat_tree", {{"oversubscription", oversubscription}});
    CHECK(tests::count(graph, "leaf") == 4);
    CHECK(tests::count(graph, "spine") == uplinks);
    CHECK(tests::trunk_cables(graph) == 4 * uplinks);
    CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu < 32; }) == uplinks * kNic);
    CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu < 64; }) == 2 * uplinks * kNic);
  }
}

TEST_CASE("fewer spines take the same uplinks on parallel cables") {
  const Graph graph = built("fat_tree", {{"oversubscription", 2.0}, {"spines", whole(4)}});
  CHECK(tests::count(graph, "spine") == 4);
  CHECK(tests::trunk_cables(graph) == 4 * 16);
  CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu < 32; }) == 16 * kNic);
}

TEST_CASE("a fat tree that fits one leaf is that leaf, and a last leaf may be partly filled") {
  const Graph one = built("fat_tree", {{"oversubscription", 4.0}}, 4);
  CHECK(tests::count(one, "leaf") == 1);
  CHECK(tests::count(one, "spine") == 0);
  CHECK(tests::bisection(one, [](std::uint32_t gpu) { return gpu < 16; }) == 16 * kNic);
  const Graph five = built("fat_tree", {{"oversubscription", 4.0}}, 5);
  CHECK(tests::count(five, "leaf") == 2);
  CHECK(tests::bisection(five, [](std::uint32_t gpu) { return gpu < 32; }) == 8 * kNic);
}

TEST_CASE("a three-tier fat tree with leaf_hosts = k/2 is the k-ary fat tree of Al-Fares et al.") {
  for (const std::int64_t k : {2, 4, 8}) {  // k^3/4 hosts, k pods of k/2 leaves and k/2 spines, (k/2)^2 cores
    INFO("k = " << k);
    const std::int64_t hosts = k * k * k / 4;
    const Graph graph = built("fat_tree", {{"tiers", whole(3)}, {"leaf_hosts", k / 2}}, hosts, 1);
    CHECK(tests::count(graph, "leaf") == k * k / 2);
    CHECK(tests::count(graph, "spine") == k * k / 2);
    CHECK(tests::count(graph, "core") == k * k / 4);
    CHECK(tests::trunk_cables(graph) == 2 * hosts);
    CHECK(tests::bisection(graph, [&](std::uint32_t gpu) { return gpu < hosts / 2; }) == hosts / 2 * kNic);
    std::vector<std::int64_t> ports(graph.vertices.size());
    for (const Link& link : graph.links) ++ports[link.from];
    for (std::size_t vertex = graph.gpus; vertex < graph.vertices.size(); ++vertex) CHECK(ports[vertex] == k);
  }
}

TEST_CASE(
    "oversubscription of a three-tier fat tree thins the leaves and the pods above them, on any number of spines") {
  for (const std::int64_t spines : {4, 2, 1}) {  // 8 leaves in 2 pods, 4 uplinks a leaf
    INFO(spines << " spines a pod");
    const Graph graph = built("fat_tree", {{"tiers", whole(3)},
                                           {"leaf_hosts", whole(16)},
                                           {"pod_leaves", whole(4)},
                                           {"spines", spines},
                                           {"oversubscription", 4.0}});
    CHECK(tests::count(graph, "spine") == 2 * spines);
    CHECK(tests::count(graph, "core") == 4 * 4);
    CHECK(tests::trunk_cables(graph) == 8 * 4 + 2 * 16);
    CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu < 16; }) == 4 * kNic);
    CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu < 64; }) == 16 * kNic);
  }
}

TEST_CASE("rails join equal GPUs of all nodes at full rate, and only what leaves a rail is thinned") {
  for (const std::int64_t ratio : {1, 2, 4, 16}) {
    INFO("oversubscription " << ratio);
    const Graph graph = built("rail_optimized", {{"oversubscription", static_cast<double>(ratio)}});
    CHECK(tests::count(graph, "rail") == 8);
    CHECK(tests::count(graph, "spine") == 16 / ratio);
    CHECK(tests::trunk_cables(graph) == 8 * 16 / ratio);
    CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu < 64; }) == 64 * kNic);  // along the rails
    CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu % 8 == 3; }) == 16 / ratio * kNic);
    CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu % 8 < 4; }) == 64 / ratio * kNic);
    for (const Link& link : graph.links)  // GPU i of a node is on rail i
      if (link.kind == LinkKind::network && link.from < graph.gpus)
        CHECK(graph.names[link.to] == fmt::format("rail{}", link.from % 8));
  }
}

TEST_CASE("pods of rails meet in the spines only") {
  const Graph graph = built("rail_optimized", {{"oversubscription", 2.0}, {"nodes_per_pod", whole(4)}});
  CHECK(tests::count(graph, "rail") == 4 * 8);
  CHECK(tests::count(graph, "spine") == 2);
  CHECK(tests::trunk_cables(graph) == 32 * 2);
  CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu < 64; }) == 32 * kNic);
}

TEST_CASE("what does not divide is refused with what would") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal("fat_tree", {{"oversubscription", 3.0}}),
             Contains("fat_tree.oversubscription 3") && Contains("2 or 4 is valid"));
  CHECK_THAT(refusal("fat_tree", {{"oversubscription", 100.0}}), Contains("32 is valid"));
  CHECK_THAT(refusal("fat_tree", {{"oversubscription", 1.33}}), Contains("1 or 2 is valid"));
  CHECK_THAT(refusal("fat_tree", {{"oversubscription", 0.5}}), Contains("must be 1 or more"));
  CHECK_THAT(refusal("fat_tree", {{"oversubscription", std::numeric_limits<double>::quiet_NaN()}}),
             Contains("must be 1 or more"));
  CHECK_THAT(refusal("fat_tree", {{"leaf_hosts", whole(0)}}), Contains("fat_tree.leaf_hosts is 0"));
  CHECK_THAT(refusal("fat_tree", {{"spines", whole(5)}}), Contains("fat_tree.spines 5") && Contains("32 is valid"));
  CHECK_THAT(refusal("fat_tree", {{"pod_leaves", whole(2)}}), Contains("fat_tree.tiers: 3"));
  CHECK_THAT(refusal("rail_optimized", {{"oversubscription", 3.0}}),
             Contains("rail_optimized.oversubscription 3") && Contains("2 or 4"));
  CHECK_THAT(refusal("rail_optimized", {{"oversubscription", 4.0}}, 2), Contains("2 is valid"));
  CHECK_THAT(refusal("rail_optimized", {{"spines", whole(3)}}), Contains("rail_optimized.spines 3"));
}
