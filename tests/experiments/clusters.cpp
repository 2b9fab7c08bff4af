// Files of clusters' tools: what they say is found, what they cannot mean is refused with its line.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/clusters/fabric_file.hpp"
#include "experiments/clusters/host_graph.hpp"
#include "experiments/clusters/node_list.hpp"
#include "experiments/clusters/survey.hpp"
#include "experiments/discovery/cluster_files.hpp"
#include "experiments/discovery/ibnetdiscover.hpp"
#include "experiments/discovery/slurm_topology.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments::clusters;
using Catch::Contains;

namespace {

std::string folder(const std::string& name) {
  return source_folder() + "/tests/experiments/clusters/" + name;
}

Fabric real_fabric() {
  return *read_cluster_files({folder("ibnetdiscover.out.gz")}).fabric;
}

std::string refusal(const std::string& text) {
  ClusterFiles files;
  try {
    read_cluster_text(files, text, "file");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

/// Two hosts of two adapters, on two leaves with a spine; at both ends of each cable.
std::string small_fabric() {
  std::string text;
  const auto node = [&](const char* kind, int ports, const std::string& key, const std::string& description) {
    text += fmt::format("switchguid=1\n{}\t{} \"{}\"\t\t# \"{}\"\n", kind, ports, key, description);
  };
  const auto port = [&](int from, const std::string& other, int to) {
    text += fmt::format("[{}]\t\"{}\"[{}]\t\t# \"x\" lid 1 4xNDR\n", from, other, to);
  };
  for (int leaf = 1; leaf <= 2; ++leaf) {
    node("Switch", 64, fmt::format("S-{}", leaf), fmt::format("MF0;leaf-{}:MQM9700/U1", leaf));
    for (int host = 1; host <= 2; ++host) port(host, fmt::format("H-{}{}", host, leaf), 1);
    port(33, "S-3", leaf);
  }
  node("Switch", 64, "S-3", "MF0;spine-1:MQM9700/U1");
  for (int leaf = 1; leaf <= 2; ++leaf) port(leaf, fmt::format("S-{}", leaf), 33);
  for (int host = 1; host <= 2; ++host)
    for (int leaf = 1; leaf <= 2; ++leaf) {
      node("Ca", 1, fmt::format("H-{}{}", host, leaf), fmt::format("node{} mlx5_{}", host, leaf));
      port(1, fmt::format("S-{}", leaf), host);
    }
  return text;
}

topologies::FabricSpec spec_of(std::int64_t nodes, std::int64_t gpus_per_node) {
  topologies::FabricSpec spec;
  spec.nodes = nodes, spec.gpus_per_node = gpus_per_node;
  spec.scale_up_bits_per_second = 3'600'000'000'000, spec.scale_up_latency_ps = 500'000;
  spec.nic_bits_per_second = 400'000'000'000, spec.nic_latency_ps = 500'000;
  spec.host_bits_per_second = 500'000'000'000;
  return spec;
}

}  // namespace

TEST_CASE("Slurm's node lists name each node in their order") {
  const std::vector<std::string> names{"a01", "a02", "a12", "b3", "c1x2", "c1x3"};
  CHECK(expand_node_list("a[01-02,12],b3,c[1]x[2-3]") == names);
  CHECK(expand_node_list("").empty());
  CHECK(expand_node_list("n[8-11]").back() == "n11");
  for (const char* list : {"a[1", "a]1", "a[[1]]", "a,,b", "a[2-1]", "a[x]", "a,a", "a[1-2]b[", "a[]", "a b",
                           "n[0-999999999]", "n[1-999]x[1-999]"})
    CHECK_THROWS_AS(expand_node_list(list), core::InputError);
}

TEST_CASE("names are ordered as people count") {
  CHECK(natural_less("mlx5_2", "mlx5_10"));
  CHECK_FALSE(natural_less("mlx5_10", "mlx5_2"));
  CHECK(natural_less("c9", "c10"));
  CHECK(natural_less("c01", "c2"));
  CHECK_FALSE(natural_less("a", "a"));
}

// The counts are those of the file, by grep: 31 blocks of leaves and 9 of spines, 582 of adapters of which 40 are
// inside switches, 1064 ends of cables between switches.
TEST_CASE("the fabric of a real cluster is found with all that it lacks") {
  const Fabric fabric = real_fabric();
  const Survey survey = survey_of(fabric);
  CHECK(fabric.switches.size() == 40);
  REQUIRE(survey.tiers.size() == 2);
  CHECK(survey.tiers[0].switches.size() == 31);
  CHECK(survey.tiers[1].switches.size() == 9);
  CHECK(fabric.cables.size() == 532);
  CHECK(fabric.switch_internal == 40);
  CHECK(survey.nics + fabric.unnamed_nics == 542);
  CHECK(fabric.unnamed_nics == 0);
  CHECK(survey.rates == std::vector<std::string>{"542 NICs of 400 Gb/s", "532 cables between switches of 400 Gb/s"});
  CHECK(survey.missing.count == 31 * 9 * 2 - 532);
  CHECK(survey.missing.places.size() == 16);
  CHECK(std::count(survey.missing.places.begin(), survey.missing.places.end(),
                   "A09-P1-IBLEAF-01-01 to A10-P1-IBSPINE-04: 1 of 2") == 1);
  CHECK(fabric.nics_per_host == 4);
  CHECK(survey.rails == 4);
  REQUIRE(survey.crossed.size() == 1);
  CHECK_THAT(survey.crossed[0], Contains("b08-p1-dgx-08-c01: HCA-5 on B09-P1-IBLEAF-04-08"));
  // The third leaf of the first group is not in the file: its 18 hosts have three adapters. Two hosts manage the
  // fabric.
  CHECK(survey.incomplete.size() == 20);
}

TEST_CASE("adapters without a name belong to hosts by their port number") {
  const Fabric fabric = real_fabric();
  const auto host = std::find_if(fabric.hosts.begin(), fabric.hosts.end(), [](const Host& one) {
    return one.name == "unnamed-A09-P1-IBLEAF-01-02-port6" || one.name == "unnamed-A09-P1-IBLEAF-02-02-port6" ||
           one.name == "unnamed-A09-P1-IBLEAF-03-02-port6" || one.name == "unnamed-A09-P1-IBLEAF-04-02-port6";
  });
  REQUIRE(host != fabric.hosts.end());
  CHECK(host->nics.size() == 4);
}

TEST_CASE("a fabric is written, read again, and is the same") {
  const Fabric fabric = real_fabric();
  const std::string text = fabric_yaml(fabric);
  const Fabric again = parse_fabric_file(text, "mine.yaml");
  CHECK(fabric_yaml(again) == text);
  CHECK(again.hosts.size() == fabric.hosts.size());
}

TEST_CASE("listed hosts become nodes in the order of the list") {
  const Fabric fabric = real_fabric();
  const auto spec = spec_of(16, 4);
  const auto graph =
      build_host_graph(fabric, spec, expand_node_list("a08-p1-dgx-04-c[01-08],b07-p1-dgx-07-c[01-04,06-09]"));
  CHECK(graph.gpus == 64);
  const auto leaf_of = [&](std::uint32_t gpu) {
    for (const auto& link : graph.links)
      if (link.from == gpu && link.kind == core::network::LinkKind::network) return graph.names[link.to];
    return std::string();
  };
  CHECK(leaf_of(0) == "A09-P1-IBLEAF-01-04");
  CHECK(leaf_of(3) == "A09-P1-IBLEAF-04-04");
  CHECK(leaf_of(63) == "B09-P1-IBLEAF-04-07");
  CHECK_THROWS_WITH(build_host_graph(fabric, spec_of(1, 4), {"a05-p1-dgx-01-c01"}), Contains("has 3 NICs"));
  CHECK_THROWS_WITH(build_host_graph(fabric, spec_of(1, 4), {"a08-p1-dgx-04-c99"}), Contains("no host"));
  CHECK_THROWS_WITH(build_host_graph(fabric, spec_of(1'000, 4), {}), Contains("set it to"));
}

TEST_CASE("GPUs share NICs, or have several, in order") {
  const Fabric fabric = parse_ibnetdiscover(small_fabric(), "small");
  REQUIRE(fabric.hosts.size() == 2);
  const auto nics_of = [&](std::int64_t gpus) {
    const auto graph = build_host_graph(fabric, spec_of(2, gpus), {});
    return std::count(graph.vertices.begin(), graph.vertices.end(), core::network::VertexKind::nic);
  };
  CHECK(nics_of(2) == 0);
  CHECK(nics_of(1) == 0);
  CHECK(nics_of(4) == 4);
}

TEST_CASE("a torn ibnetdiscover is refused with its line") {
  const std::string text = small_fabric();
  CHECK(refusal(text) == "");
  CHECK_THAT(refusal(text.substr(0, text.find("Ca\t1 \"H-22"))), Contains("no block"));
  std::string wrong = text;
  wrong.replace(wrong.find("4xNDR"), 5, "4xABC");
  CHECK_THAT(refusal(wrong), Contains("file:3: ") && Contains("4xABC"));
  wrong = text;
  wrong.replace(wrong.find("\"H-11\"[1]"), 9, "\"H-11\"[7]");
  CHECK_THAT(refusal(wrong), Contains("before"));
  CHECK_THAT(refusal("switchguid=1\n[1]\t\"S-1\"[1] # 4xNDR\n"), Contains("file:2: is a port before"));
}

TEST_CASE("iblinkinfo gives hosts, rates and ports that are down") {
  const std::string text =
      "CA: node1 mlx5_0:\n"
      "      0x01    5    1[  ] ==( 4X     106.25 Gbps Active/  LinkUp)==>       7    1[  ] \"MF0;leaf-1:MQM9700/U1\" "
      "( )\n"
      "Switch: 0x02 MF0;leaf-1:MQM9700/U1:\n"
      "      7    1[  ] ==( 4X     106.25 Gbps Active/  LinkUp)==>       5    1[  ] \"node1 mlx5_0\" ( )\n"
      "      7    2[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )\n"
      "      7    3[  ] ==( 4X   25.78125 Gbps Active/  LinkUp)==>       9    1[  ] \"node2 mlx5_0\" ( )\n"
      "CA: node2 mlx5_0:\n"
      "      0x03    9    1[  ] ==( 4X   25.78125 Gbps Active/  LinkUp)==>       7    3[  ] \"MF0;leaf-1:MQM9700/U1\" "
      "( )\n";
  REQUIRE(is_iblinkinfo(text));
  const Fabric fabric = parse_iblinkinfo(text, "links");
  REQUIRE(fabric.hosts.size() == 2);
  CHECK(fabric.hosts[0].name == "node1");
  CHECK(fabric.hosts[0].nics[0].gbps == 400);
  CHECK(fabric.hosts[1].nics[0].gbps == 100);
  CHECK(fabric.switches[0].name == "leaf-1");
  CHECK(fabric.switches[0].down_ports == 1);
}

TEST_CASE("NCCL's topologies of clouds have the devices of their nodes") {
  const auto node = [](const char* name) { return *read_cluster_files({folder(name)}).node; };
  const NodeInside v2 = node("azure_ndv2-topo.xml"), v4 = node("azure_ndv4-topo.xml"),
                   p4d = node("aws_p4d-24xl-topo.xml");
  CHECK((v2.gpus == 8 && v2.nics.size() == 1));
  CHECK((v4.gpus == 8 && v4.nics.size() == 8));
  CHECK((p4d.gpus == 8 && p4d.nics.size() == 4));
  CHECK(p4d.nics[1].near == std::vector<std::int64_t>{2, 3});
  CHECK(v4.nics[7].near == std::vector<std::int64_t>{6, 7});
}

TEST_CASE("a dump of NCCL tells GPUs, NVLinks and rates") {
  ClusterFiles files;
  read_cluster_text(
      files,
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1\" class=\"0x060400\">"
      "<pci busid=\"2\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\"><nvlink target=\"x\" count=\"18\"/></gpu></pci>"
      "<pci busid=\"3\" class=\"0x020700\"><nic><net name=\"mlx5_0\" speed=\"400000\"/></nic></pci></pci>"
      "<pci busid=\"4\" class=\"0x020000\"><nic><net name=\"eth0\" speed=\"25000\"/></nic></pci></cpu></system>",
      "dump.xml");
  NodeInside& node = *files.node;
  CHECK((node.gpus == 1 && node.compute_capability == 90 && node.nvlinks == 18));
  CHECK(keep_fast_nics(node) == 400);
  REQUIRE(node.nics.size() == 1);
  CHECK(node.nics[0].near == std::vector<std::int64_t>{0});
  CHECK_THAT(refusal("<system>\n<pci class=\"0x030200\">\n</system>"), Contains("file:3: "));
  CHECK_THAT(refusal("<system><pci class=\"0x030200\""), Contains("ends inside"));
}

TEST_CASE("a matrix of nvidia-smi tells GPUs, NICs and their switches") {
  ClusterFiles files;
  read_cluster_text(
      files,
      "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
      "GPU0\t X \tNV18\tPXB\tSYS\t0-55\t0\nGPU1\tNV18\t X \tSYS\tPIX\t0-55\t0\n"
      "NIC0\tPXB\tSYS\t X \tSYS\nNIC1\tSYS\tPIX\tSYS\t X\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n",
      "topo");
  const NodeInside& node = *files.node;
  CHECK((node.gpus == 2 && node.nvlinks == 18));
  REQUIRE(node.nics.size() == 2);
  CHECK(node.nics[1].name == "mlx5_1");
  CHECK(node.nics[1].near == std::vector<std::int64_t>{1});
}

TEST_CASE("Slurm's tree becomes a fabric by the numbers that are given for it") {
  ClusterFiles files = read_cluster_files({folder("topology_tree_topograph.conf")});
  Fabric& fabric = *files.fabric;
  CHECK(fabric.hosts.size() == 96);
  CHECK(fabric.switches.size() == 19);
  assume_rates(fabric, 400, 8, 2);
  const Survey survey = survey_of(fabric);
  REQUIRE(survey.tiers.size() == 3);
  CHECK(survey.tiers[0].switches.size() == 12);
  CHECK(survey.tiers[0].cables_up == 96 * 8 / 2);
  CHECK(survey.tiers[1].cables_up == 96 * 8 / 2);
  CHECK(survey.complete_hosts == 96);
  CHECK(read_cluster_files({folder("topology_block_topograph.conf")}).fabric->hosts.size() == 96);
  CHECK_THAT(refusal("SwitchName=a Switches=b\n"), Contains("no node"));
  CHECK_THAT(refusal("SwitchName=a Switches=b\nSwitchName=c Nodes=n1\n"), Contains("'b'"));
  CHECK_THAT(refusal("SwitchName=a Switches=b Nodes=n\nSwitchName=b Switches=a\n"), Contains("below itself"));
  CHECK_THAT(refusal("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2\n"), Contains("file:2: "));
  CHECK_THAT(refusal("SwitchName=a Node=n1\n"), Contains("did you mean 'Nodes'"));
}

TEST_CASE("NetQ's graph has hosts, switches and cables without rates") {
  const Fabric fabric = *read_cluster_files({folder("netq_topologyGraph.json.gz")}).fabric;
  CHECK(fabric.switches.size() == 3);
  CHECK(fabric.usual_nic_gbps() == 0);
  for (const Host& host : fabric.hosts) CHECK(host.nics.size() == 4);
  CHECK(read_cluster_files({folder("netq_computeNodes.json")}).gpus_per_host == 4);
}

TEST_CASE("InfraGraph's files make a fabric together, and say what they lack alone") {
  const auto path = [](const std::string& part) { return folder("two-tier-clos-fabric-" + part + ".yaml"); };
  const ClusterFiles files = read_cluster_files({path("infrastructure"), path("server"), path("switch")});
  const Survey survey = survey_of(*files.fabric);
  CHECK(files.gpus_per_host == 4);
  CHECK(files.fabric->hosts.size() == 4);
  REQUIRE(survey.tiers.size() == 2);
  CHECK((survey.tiers[0].switches.size() == 4 && survey.tiers[1].switches.size() == 3));
  CHECK(survey.rates == std::vector<std::string>{"16 NICs of 800 Gb/s", "12 cables between switches of 3200 Gb/s"});
  CHECK_THROWS_WITH(read_cluster_files({path("infrastructure")}), Contains("which no file describes"));
  CHECK_THROWS_WITH(read_cluster_files({path("server")}), Contains("no 'instances'"));
  CHECK_THROWS_WITH(read_cluster_files({folder("dgxa100.yaml"), folder("cx5.yaml")}), Contains("'server'"));
}

TEST_CASE("damaged files of clusters are read or refused") {
  std::mt19937_64 random(25);
  std::vector<std::string> texts{small_fabric()};
  for (const char* name : {"azure_ndv4-topo.xml", "topology_tree_topograph.conf", "netq_computeNodes.json"})
    texts.push_back(experiments::import::read_text(folder(name)));
  std::int64_t refused = 0, read = 0;
  for (int i = 0; i < 4'000; ++i) {
    ClusterFiles files;
    try {
      read_cluster_text(files, experiments::testing::mutated(texts[static_cast<std::size_t>(i) % texts.size()], random),
                        "file");
      if (files.fabric) assume_rates(*files.fabric, 400, 2, 1), survey_of(*files.fabric);
      ++read;
    } catch (const core::InputError&) {
      ++refused;
    }
  }
  CHECK(refused > 500);
  CHECK(read > 500);
}

TEST_CASE("a file of no known kind is refused with what is known") {
  CHECK_THAT(refusal("hello\n"), Contains("file:1: is of no kind"));
}
