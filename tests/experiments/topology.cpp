// Topology files: what they say is what is built; everything else is refused by file and line.
#include <catch2/catch.hpp>

#include "experiments/import/topology.hpp"

#include <algorithm>
#include <random>
#include <tuple>

#include "core/network/fabric/router.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::network::Graph;
using core::network::Link;
using core::network::LinkKind;
using import::parse_topology;

namespace {

const std::string kSample = source_folder() + "/tests/experiments/topologies/spectrum_x_16g_8gps_400gbps_h100.txt";

/// Two servers of two GPUs with an NVSwitch each, on one switch.
const std::string kSmall =
    "7 2 2 1 8 H100\n"             // 1
    "4 5 6\n"                      // 2
    "0 4 2880Gbps 0.000025ms 0\n"  // 3
    "1 4 2880Gbps 0.000025ms 0\n"  // 4
    "2 5 2880Gbps 0.000025ms 0\n"  // 5
    "3 5 2880Gbps 0.000025ms 0\n"  // 6
    "0 6 400Gbps 0.0005ms 0\n"     // 7
    "1 6 400Gbps 500ns 0\n"        // 8
    "2 6 0.4Tbps 500000ps 0.0\n"   // 9
    "3 6 400000Mbps 0.5us 0\n";    // 10

std::string refusal(const std::string& text) {
  try {
    parse_topology(text, "t.txt");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

std::string sweep_on(const std::string& file, const std::string& cluster) {
  return with(with(kSingle, "{rail_optimized: {oversubscription: 1}}", "{graph: {file: '" + file + "'}}"),
              "{gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}", cluster);
}

}  // namespace

TEST_CASE("SimAI's rail-optimized sample is the rail-optimized fabric of one spine, with the file's rates") {
  const auto file = parse_topology(import::read_text(kSample), "sample");
  CHECK(file.gpus_per_server == 8);
  REQUIRE(file.graph.gpus == 16);
  CHECK(file.graph.vertices.size() == 27);
  REQUIRE(file.graph.links.size() == 2 * 40);
  topologies::FabricSpec spec{2,      8, core::compute::ScaleUp::nvswitch, 2'880'000'000'000, 25'000, 400'000'000'000,
                              500'000};
  const auto& all = topologies::registry();
  const auto rails = std::find_if(all.begin(), all.end(), [](const auto& one) { return one.name == "rail_optimized"; });
  const Graph built = rails->build({{"spines", std::int64_t{1}}, {"oversubscription", 2.0}}, spec);
  const auto sorted = [](const Graph& graph) {  // vertices are numbered alike; cables stand in another order
    std::vector<std::tuple<std::uint32_t, std::uint32_t, LinkKind, std::int64_t, core::Time>> links;
    for (const Link& link : graph.links)
      links.emplace_back(link.from, link.to, link.kind, link.bits_per_second, link.latency_ps);
    std::sort(links.begin(), links.end());
    return links;
  };
  CHECK(sorted(file.graph) == sorted(built));
  CHECK(file.graph.vertices == built.vertices);
}

TEST_CASE("units of rates and latencies are all one, and switches may stand before GPUs") {
  const Graph graph = parse_topology(kSmall, "t.txt").graph;
  for (const Link& link : graph.links) {
    CHECK(link.bits_per_second == (link.kind == LinkKind::network ? 400'000'000'000 : 2'880'000'000'000));
    CHECK(link.latency_ps == (link.kind == LinkKind::network ? 500'000 : 25'000));
  }
  const Graph turned = parse_topology("3 2 0 1 2 none\n0\n1 0 1Gbps 1us 0\n0 2 1Gbps 1us 0\n", "t.txt").graph;
  CHECK(turned.gpus == 2);
  CHECK(turned.names == std::vector<std::string>{"gpu0", "gpu1", "switch0"});
  CHECK(turned.links[0].from == 0);
  CHECK(turned.links[2].to == 1);
}

TEST_CASE("a cable between two GPUs is a scale-up link inside a server and a network cable between servers") {
  const Graph graph = parse_topology(
                          "4 2 0 0 6 -\n0 1 1Gbps 1us 0\n2 3 1Gbps 1us 0\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n"
                          "0 3 1Gbps 1us 0\n1 2 1Gbps 1us 0\n",
                          "t.txt")
                          .graph;
  CHECK(graph.links[0].kind == LinkKind::scale_up);
  CHECK(graph.links[4].kind == LinkKind::network);
}

TEST_CASE("a topology file that is none, or cannot be simulated, is refused by line, saying what would be right") {
  using Catch::Contains;
  using Catch::StartsWith;
  CHECK(refusal(kSmall) == "(no error)");
  CHECK_THAT(refusal(""), StartsWith("t.txt:1: the file ends"));
  CHECK_THAT(refusal("seven 2\n"), StartsWith("t.txt:1: the number of nodes") && Contains("'seven'"));
  CHECK_THAT(refusal(with(kSmall, "7 2 2 1 8", "7 3 2 1 8")),
             StartsWith("t.txt:1: ") && Contains("no multiple of the 3"));
  CHECK_THAT(refusal(with(kSmall, "7 2 2 1 8", "99999999999 2 2 1 8")), StartsWith("t.txt:1: "));
  CHECK_THAT(refusal(with(kSmall, "7 2 2 1 8", "7 2 4 3 8")), StartsWith("t.txt:1: the number of switches"));
  CHECK_THAT(refusal(with(kSmall, "4 5 6\n", "4 5 5\n")), StartsWith("t.txt:2: node 5 is named twice"));
  CHECK_THAT(refusal(with(kSmall, "4 5 6\n", "4 5 7\n")), StartsWith("t.txt:2: ") && Contains("from 0 to 6"));
  CHECK_THAT(refusal(with(kSmall, "0 6 400Gbps", "0 9 400Gbps")), StartsWith("t.txt:7: the destination"));
  CHECK_THAT(refusal(with(kSmall, "0 6 400Gbps", "6 6 400Gbps")), StartsWith("t.txt:7: ") && Contains("to itself"));
  CHECK_THAT(refusal(with(kSmall, "0 6 400Gbps", "0 6 400")), StartsWith("t.txt:7: ") && Contains("unit"));
  CHECK_THAT(refusal(with(kSmall, "0 6 400Gbps", "0 6 0Gbps")), StartsWith("t.txt:7: "));
  CHECK_THAT(refusal(with(kSmall, "0 6 400Gbps", "0 6 -1Gbps")), StartsWith("t.txt:7: "));
  CHECK_THAT(refusal(with(kSmall, "500ns 0", "500ns 0.01")), StartsWith("t.txt:8: ") && Contains("lose nothing"));
  CHECK_THAT(refusal(with(kSmall, "500ns 0", "0ns 0")), StartsWith("t.txt:8: "));
  CHECK_THAT(refusal(with(kSmall, "500ns 0", "500ns")), StartsWith("t.txt:9: ") && Contains("'2'"));
  CHECK_THAT(refusal(with(kSmall, "2 6 0.4Tbps 500000ps 0.0\n", "")), StartsWith("t.txt:10: the file ends"));
  CHECK_THAT(refusal(kSmall + "0 6 1Gbps 1us 0\n"), StartsWith("t.txt:11: text follows the 8 links"));
  CHECK_THAT(refusal(with(kSmall, "1 4 2880Gbps", "1 5 2880Gbps")), Contains("one server only"));
  CHECK_THAT(refusal(with(kSmall, "3 6 400000Mbps", "5 6 400000Mbps")), StartsWith("t.txt:10: an NVSwitch"));
  CHECK_THAT(refusal(with(kSmall, "3 6 400000Mbps", "2 6 400000Mbps")), Contains("from GPU 0 to GPU 3"));
  CHECK_THAT(refusal(with(kSmall, "H100", "H\x01")), StartsWith("t.txt:1: byte 0x01"));
}

TEST_CASE("mutated topology files are read or refused with the file's name") {
  const std::string text = import::read_text(kSample);
  std::mt19937_64 random(3);
  std::size_t refused = 0;
  for (int i = 0; i < 3'000; ++i) {
    const std::string bent = mutated(text, random);
    CAPTURE(bent);
    try {
      const std::uint32_t gpus = parse_topology(bent, "t.txt").graph.gpus;
      REQUIRE(gpus > 0);
    } catch (const core::InputError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).rfind("t.txt:", 0) == 0);
    }
  }
  CHECK(refused > 1'500);
  CHECK(refused < 3'000);
}

TEST_CASE("a sweep carries the topology it names: read back far from the file it gives the same graph") {
  const auto read_from_a_folder = [] {
    const TemporaryFolder folder;
    folder.put("fabrics/x.txt", import::read_text(kSample));
    folder.put("s.yaml", sweep_on("fabrics/x.txt", "{gpu: a100_40, nodes: 2, gpus_per_node: 8}"));
    return read_sweep((folder / "s.yaml").string(), {"assume=2021"});
  };
  const std::string serialized = serialize(read_from_a_folder());
  const Sweep back = deserialize(serialized);
  CHECK(serialize(back) == serialized);
  GraphCache graphs;
  const auto graph = configure(back.experiments.front(), graphs).graph;
  CHECK(graph->gpus == 16);
  CHECK(graph->links == parse_topology(import::read_text(kSample), "x").graph.links);
  CHECK_THROWS_WITH(deserialize(with(serialized, "\"fabrics/x.txt\":\"27", "\"fabrics/y.txt\":\"27")),
                    Catch::Contains("resolved sweep: the file of 'topology.file'"));
  const Sweep bent = deserialize(with(serialized, "\"fabrics/x.txt\":\"27", "\"fabrics/x.txt\":\"28"));
  CHECK_THROWS_WITH(configure(bent.experiments.front(), graphs), Catch::StartsWith("fabrics/x.txt:"));
}

TEST_CASE("a cluster that contradicts its topology file is refused with the file's figures") {
  using Catch::Contains;
  CHECK_THAT(error_of(sweep_on(kSample, "{gpu: a100_40, nodes: 2, gpus_per_node: 4}")),
             Contains("s.yaml:4") && Contains("has 16 GPUs, 8 per node") && Contains("cluster.nodes to 2"));
  CHECK_THAT(error_of(sweep_on(kSample, "{gpu: a100_40, nodes: 4, gpus_per_node: 4}")), Contains("gpus_per_node to 8"));
  CHECK_THAT(error_of(sweep_on(kSample, "{gpu: a100_40, nodes: 2, gpus_per_node: 8, nic_gbps: 200}")),
             Contains("has 400 Gb/s of network, but cluster.nic_gbps is 200"));
  CHECK_THAT(error_of(sweep_on(kSample, "{gpu: a100_40, nodes: 2, gpus_per_node: 8, nic_gbps: 400}")),
             Catch::Equals("(no error)"));
  CHECK_THAT(error_of(sweep_on("", "{gpu: a100_40, nodes: 2, gpus_per_node: 8}")),
             Catch::StartsWith("s.yaml:4: 'topology.file' is missing"));
  CHECK_THAT(error_of(sweep_on("/nowhere/x", "{gpu: a100_40, nodes: 2, gpus_per_node: 8}")),
             Catch::StartsWith("s.yaml:4: 'topology.file': /nowhere/x: cannot be read"));
}
