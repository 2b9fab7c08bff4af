// What holds for every registered fabric with its default options, whatever it is: a new topology is tested before
// its author writes a test.
#include <catch2/catch.hpp>
#include <set>

#include "tests/topologies/graph_facts.hpp"

namespace {

using namespace manyworlds::core::network;
using namespace manyworlds::topologies;
using manyworlds::core::compute::ScaleUp;

struct Built {
  std::string label;
  Traits traits;
  FabricSpec spec;
  Graph graph;
};

/// Every fabric with its default options on clusters of many sizes. One that exists in certain sizes only may refuse
/// the others, saying which would be right.
std::vector<Built> every_graph() {
  std::vector<Built> all;
  for (const Topology& topology : tests::fabrics())
    for (const std::int64_t nodes : {1, 2, 3, 5, 16})
      for (const std::int64_t gpus : {1, 2, 4, 8})
        for (const ScaleUp scale_up : {ScaleUp::nvswitch, ScaleUp::full_mesh}) {
          const FabricSpec spec = tests::fabric_spec_of(nodes, gpus, scale_up);
          const std::string label = fmt::format("{} {}x{} {}", topology.name, nodes, gpus,
                                                scale_up == ScaleUp::nvswitch ? "nvswitch" : "mesh");
          INFO(label);
          try {
            all.push_back({label, topology.traits, spec, topology.build({}, spec)});
          } catch (const manyworlds::core::InputError& error) {
            REQUIRE(nodes < 16);
            REQUIRE_THAT(error.what(),
                         Catch::StartsWith(topology.name + ": ") &&
                             (Catch::Contains("are valid with") || Catch::Contains("not a power of two, but")));
          }
        }
  return all;
}

std::int64_t rate_out(const Graph& graph, std::uint32_t vertex, LinkKind kind) {
  std::int64_t rate = 0;
  for (const Link& link : graph.links)
    if (link.from == vertex && link.kind == kind) rate += link.bits_per_second;
  return rate;
}

}  // namespace

TEST_CASE("every fabric is registered once, with help and options whose defaults lie in their ranges") {
  std::set<std::string> names;
  for (const Topology& topology : registry()) {
    CHECK(names.insert(topology.name).second);
    CHECK_FALSE(topology.help.empty());
    for (const auto& option : topology.options) {
      INFO(topology.name << "." << option.name);
      CHECK_FALSE(option.help.empty());
      if (const auto* integer = std::get_if<std::int64_t>(&option.default_value))
        CHECK((static_cast<double>(*integer) >= option.minimum && static_cast<double>(*integer) <= option.maximum));
      if (const auto* real = std::get_if<double>(&option.default_value))
        CHECK((*real >= option.minimum && *real <= option.maximum));
    }
  }
}

TEST_CASE("every fabric numbers the GPUs first and names every vertex differently") {
  for (const auto& [label, traits, spec, graph] : every_graph()) {
    INFO(label);
    REQUIRE(graph.gpus == spec.nodes * spec.gpus_per_node);
    REQUIRE(graph.names.size() == graph.vertices.size());
    CHECK(std::set<std::string>(graph.names.begin(), graph.names.end()).size() == graph.names.size());
    for (std::uint32_t vertex = 0; vertex < graph.vertices.size(); ++vertex)
      CHECK((graph.vertices[vertex] == VertexKind::gpu) == (vertex < graph.gpus));
  }
}

TEST_CASE("every fabric has its links in pairs: one cable, two directions of equal rate and latency") {
  for (const auto& [label, traits, spec, graph] : every_graph()) {
    INFO(label);
    REQUIRE(graph.links.size() % 2 == 0);
    for (std::size_t i = 0; i < graph.links.size(); i += 2) {
      Link back = graph.links[i + 1];
      std::swap(back.from, back.to);
      CHECK(back == graph.links[i]);
      CHECK((back.bits_per_second > 0 && back.latency_ps >= 1 && back.from != back.to));
    }
  }
}

TEST_CASE("every name is a word of small letters, digits and underscores, so that a cable can be named by its ends") {
  for (const auto& [label, traits, spec, graph] : every_graph()) {
    INFO(label);
    for (const std::string& name : graph.names)
      CHECK((!name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos));
  }
}

TEST_CASE(
    "every GPU has the NIC cables that its fabric states, which share the NIC's rate, and all its scale-up rate") {
  for (const auto& [label, traits, spec, graph] : every_graph()) {
    INFO(label);
    for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) {
      std::int64_t nics = 0, ups = 0;
      for (const Link& link : graph.links)
        if (link.from == gpu) ++(link.kind == LinkKind::network ? nics : ups);
      CHECK(nics == traits.nic_cables);
      CHECK(rate_out(graph, gpu, LinkKind::network) == tests::kNic);
      CHECK(ups == (spec.gpus_per_node == 1 ? 0 : spec.scale_up == ScaleUp::nvswitch ? 1 : spec.gpus_per_node - 1));
      const std::int64_t lost = tests::kScaleUp - rate_out(graph, gpu, LinkKind::scale_up);
      CHECK((spec.gpus_per_node == 1 || (lost >= 0 && lost < spec.gpus_per_node)));  // bits per second, by rounding
    }
  }
}

TEST_CASE("every fabric joins the GPUs of one node, and no others, by their scale-up links") {
  for (const auto& [label, traits, spec, graph] : every_graph()) {
    INFO(label);
    const std::int64_t per_node = spec.gpus_per_node;
    CHECK(tests::connected(graph, LinkKind::scale_up,
                           [&](std::uint32_t a, std::uint32_t b) { return a / per_node == b / per_node; }));
  }
}

TEST_CASE("every fabric has a route for every pair of GPUs, which stays in the node where both are of one") {
  for (const auto& [label, traits, spec, graph] : every_graph()) {
    if (spec.nodes > 5) continue;
    INFO(label);
    for (const Route& route : tests::all_routes(graph, Routing::destination_mod_k)) {
      const std::uint32_t from = graph.links[route.front()].from, to = graph.links[route.back()].to;
      bool leaves = false, relayed = false;
      for (const std::uint32_t link : route) {
        leaves |= graph.links[link].kind == LinkKind::network;
        relayed |= graph.links[link].to < graph.gpus && graph.links[link].to != to;
      }
      CHECK(leaves == (from / spec.gpus_per_node != to / spec.gpus_per_node));
      CHECK((!relayed || graph.gpus_relay));
    }
  }
}

TEST_CASE("every fabric that states it has no links waiting in a cycle, and every other one has some") {
  for (const Topology& topology : tests::fabrics())
    for (const Routing routing : {Routing::destination_mod_k, Routing::ecmp_hash}) {
      INFO(topology.name);
      const Graph graph = topology.build({}, tests::fabric_spec_of(16, 8, ScaleUp::nvswitch));
      CHECK(tests::waits_in_cycle(graph, tests::all_routes(graph, routing)) == !topology.traits.acyclic);
    }
}

TEST_CASE("every cable between the switches of a network has the NIC's rate") {
  for (const auto& [label, traits, spec, graph] : every_graph()) {
    INFO(label);
    for (const Link& link : graph.links)
      if (link.kind == LinkKind::network && link.from >= graph.gpus && link.to >= graph.gpus)
        CHECK(link.bits_per_second == tests::kNic);
  }
}

TEST_CASE("every fabric has full bisection by default where it states so, and some cluster thins every other") {
  for (const Topology& topology : tests::fabrics()) {
    INFO(topology.name);
    bool full = true;
    for (const std::int64_t nodes : {4, 16}) {
      const Graph graph = topology.build({}, tests::fabric_spec_of(nodes, 8, ScaleUp::nvswitch));
      full &=
          tests::bisection(graph, [&](std::uint32_t gpu) { return gpu < graph.gpus / 2; }) == nodes * 4 * tests::kNic;
    }
    CHECK(full == topology.traits.full_bisection);
  }
}

TEST_CASE("every fabric is the same graph twice") {
  for (const Topology& topology : tests::fabrics()) {
    INFO(topology.name);
    const FabricSpec spec = tests::fabric_spec_of(16, 8, ScaleUp::nvswitch);
    const Graph graph = topology.build({}, spec), again = topology.build({}, spec);
    CHECK(graph.links == again.links);
    CHECK(graph.names == again.names);
  }
}

TEST_CASE("every fabric refuses a site that cannot exist, and says what to give") {
  using manyworlds::core::InputError;
  for (const Topology& topology : tests::fabrics()) {
    INFO(topology.name);
    const auto refusal = [&](void (*spoil)(FabricSpec&)) -> std::string {
      FabricSpec spec = tests::fabric_spec_of(16, 8, ScaleUp::nvswitch);
      spoil(spec);
      try {
        topology.build({}, spec);
      } catch (const InputError& error) {
        return error.what();
      }
      return "accepted";
    };
    using Catch::Matchers::Contains;
    CHECK_THAT(refusal([](FabricSpec& spec) { spec.nodes = 0; }), Contains("cluster.nodes"));
    CHECK_THAT(refusal([](FabricSpec& spec) { spec.nodes = 1'000'000'000; }), Contains("cluster.nodes"));
    CHECK_THAT(refusal([](FabricSpec& spec) { spec.gpus_per_node = -8; }), Contains("cluster.gpus_per_node"));
    CHECK_THAT(refusal([](FabricSpec& spec) { spec.nic_bits_per_second = 0; }), Contains("cluster.nic_gbps"));
    CHECK_THAT(refusal([](FabricSpec& spec) { spec.scale_up_bits_per_second = 0; }), Contains("scale_up_gb_per_s"));
    CHECK_THAT(refusal([](FabricSpec&) {}), Catch::Matchers::Equals("accepted"));
  }
}

TEST_CASE("every fabric has a small form of sixteen GPUs, whose longest path is as long as any of 128 by default") {
  for (const Topology& topology : tests::fabrics()) {
    INFO(topology.name);
    for (const auto& [name, value] : topology.traits.small_options)
      CHECK(std::count_if(topology.options.begin(), topology.options.end(),
                          [&, &key = name](const auto& option) { return option.name == key; }) == 1);
    const auto longest = [&](const manyworlds::core::OptionSet& options, const FabricSpec& spec) {
      std::size_t links = 0;
      for (const Route& route : tests::all_routes(topology.build(options, spec), Routing::destination_mod_k))
        links = std::max(links, route.size());
      return links;
    };
    CHECK(longest(topology.traits.small_options, tests::fabric_spec_of(4, 4, ScaleUp::nvswitch)) >=
          longest({}, tests::fabric_spec_of(16, 8, ScaleUp::nvswitch)));
  }
}
