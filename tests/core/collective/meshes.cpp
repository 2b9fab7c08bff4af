// Collectives on a full mesh: bytes on every link by closed forms, what a library takes, and times packet by packet.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/calibrated_costs.hpp"
#include "core/collective/library/library.hpp"
#include "core/collective/library/tuner.hpp"
#include "core/collective/transfers/mesh_orders.hpp"
#include "tests/core/collective/simulated_collective.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::core::collective;

namespace {

using Pairs = std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>;

Pairs bytes_by_pair(const Dag& dag) {
  Pairs result;
  for (const Transfer& transfer : dag.transfers) result[dag.pairs[transfer.pair]] += transfer.bytes;
  return result;
}

/// How often orders step from one member to another.
void count_steps(Pairs& steps, const std::vector<std::uint32_t>& order, bool closed) {
  for (std::size_t i = 0; i + (closed ? 0 : 1) < order.size(); ++i) ++steps[{order[i], order[(i + 1) % order.size()]}];
}

bool passes_all_once(std::vector<std::uint32_t> order, std::uint32_t members) {
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return order.size() == members;
}

/// Members joined by links of 10 GB/s each inside a node, and NICs of 1 GB/s.
Communicator mesh(std::uint32_t members, std::uint32_t per_node) {
  Communicator result{members, per_node, {80'000'000'000, kMicrosecond}, {8'000'000'000, 2 * kMicrosecond}};
  result.node_mesh = per_node > 2;
  return result;
}

Library library(Algorithm all_reduce, Protocol protocol = Protocol::none) {
  Library result;
  result.all_reduce = all_reduce;
  result.channels = 0;
  result.protocol = protocol;
  result.calibration = calibration();
  return result;
}

}  // namespace

TEST_CASE("rings over a mesh step along every link equally often, in both directions") {
  for (std::uint32_t n = 2; n <= 16; ++n) {
    INFO(n << " members");
    Pairs steps;
    for (std::uint32_t ring = 0; ring < mesh_rings(n); ++ring) {
      REQUIRE(passes_all_once(mesh_ring(n, ring), n));
      count_steps(steps, mesh_ring(n, ring), true);
    }
    REQUIRE(steps.size() == n * (n - 1));
    for (const auto& [pair, count] : steps) REQUIRE(count == mesh_rings(n) / (n - 1));
  }
  CHECK(mesh_rings(8) == 14);  // RCCL: seven rings of eight GPUs and the same backwards
  CHECK(mesh_rings(7) == 6);   // an odd complete graph falls apart into Hamiltonian cycles
  CHECK(mesh_rings(2) == 1);
}

TEST_CASE("paths over a mesh step along every link equally often, and begin and end everywhere equally often") {
  for (std::uint32_t n = 3; n <= 16; ++n) {
    INFO(n << " members");
    Pairs steps;
    std::map<std::uint32_t, std::uint32_t> begins, ends;
    for (std::uint32_t path = 0; path < mesh_paths(n); ++path) {
      const std::vector<std::uint32_t> order = mesh_path(n, path);
      REQUIRE(passes_all_once(order, n));
      count_steps(steps, order, false);
      ++begins[order.front()], ++ends[order.back()];
    }
    const std::uint32_t each = n % 2 == 0 ? 1 : 2;
    REQUIRE(steps.size() == n * (n - 1));
    for (const auto& [pair, count] : steps) REQUIRE(count == each);
    REQUIRE((begins.size() == n && ends.size() == n));
    for (std::uint32_t i = 0; i < n; ++i) REQUIRE((begins[i] == each && ends[i] == each));
  }
}

TEST_CASE("in a node every link of a mesh carries a block for each half of an all-reduce, whatever carries it out") {
  for (const std::uint32_t n : {3u, 4u, 5u, 8u})
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter})
      for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct}) {
        const std::int64_t block = std::int64_t{1'000} * mesh_rings(n), bytes = n * block;
        const Shape shape = choose_shape(library(algorithm), mesh(n, n), kind, bytes);
        INFO(shape.text());
        const Pairs carried = bytes_by_pair(build(shape));
        REQUIRE(carried.size() == n * (n - 1));
        for (const auto& [pair, sum] : carried) REQUIRE(sum == (kind == Kind::all_reduce ? 2 : 1) * block);
      }
  // Two members have one link, and the ring is that of any other node.
  CHECK(choose_shape(library(Algorithm::ring), mesh(2, 2), Kind::all_reduce, 8'000).text() ==
        "all_reduce ring n=2 8000 B");
}

TEST_CASE(
    "across nodes a mesh carries what each NIC does, along rails, in rings and in two levels a block of each rail") {
  constexpr std::uint32_t kPerNode = 8, kNodes = 4, kMembers = kPerNode * kNodes;
  const std::int64_t bytes = 64 * kMembers * kPerNode, share = bytes / kPerNode;
  const Shape rings = choose_shape(library(Algorithm::ring), mesh(kMembers, kPerNode), Kind::all_gather, bytes);
  CHECK(rings.text() == "all_gather ring n=32 16384 B channels=8 mesh");
  std::map<std::uint32_t, std::int64_t> sent;  // by NIC
  for (const auto& [pair, sum] : bytes_by_pair(build(rings))) {
    const auto& [from, to] = pair;
    // A ring passes all blocks but one; it steps along each link of a node once.
    REQUIRE(sum == share - share / kMembers);
    if (from / kPerNode == to / kPerNode) continue;
    REQUIRE(from % kPerNode == to % kPerNode);
    sent[from] += sum;
  }
  CHECK(sent.size() == kMembers);
  const Shape levels = choose_shape(library(Algorithm::two_level), mesh(kMembers, kPerNode), Kind::all_gather, bytes);
  for (const auto& [pair, sum] : bytes_by_pair(build(levels)))
    if (pair.first / kPerNode == pair.second / kPerNode)
      REQUIRE(sum == bytes / kPerNode);
    else
      REQUIRE(sum == (kNodes - 1) * bytes / kMembers);
  // More than 64 members are two levels, too, which fills as many links.
  CHECK(choose_shape(library(Algorithm::ring), mesh(72, 8), Kind::all_reduce, 1 << 20).algorithm ==
        Algorithm::two_level);
}

TEST_CASE("an all-to-all in a mesh sends to all members at once, and to one after the other elsewhere") {
  const auto waits = [](const Communicator& who) {
    const Shape shape = choose_shape(library(Algorithm::automatic), who, Kind::all_to_all, 8'000);
    const Dag dag = build(shape);
    CHECK(bytes_by_pair(dag).size() == 56);
    return dag.successors.size();
  };
  CHECK(waits(mesh(8, 8)) == 0);
  Communicator switched = mesh(8, 8);
  switched.node_mesh = false;
  CHECK(waits(switched) > 0);
}

TEST_CASE("the members of a mesh are known as such, whichever they are, and those of a switch are not") {
  Cluster cluster;
  cluster.gpus_per_node = 8;
  for (const bool is_mesh : {false, true}) {
    cluster.mesh = is_mesh;
    network::Router router(graph_of(cluster), network::Routing::destination_mod_k, 1);
    CHECK(step::communicator_of(router, {0, 1, 2, 3, 4, 5, 6, 7}, 8).node_mesh == is_mesh);
    CHECK(step::communicator_of(router, {0, 2, 4, 6, 8, 10, 12, 14}, 4).node_mesh == is_mesh);
    CHECK_FALSE(step::communicator_of(router, {0, 4}, 2).node_mesh);
    CHECK_FALSE(step::communicator_of(router, {0, 8}, 1).node_mesh);
  }
}

TEST_CASE("rings in a mesh last as the pipeline says over all links together, packet by packet") {
  Cluster cluster;
  cluster.mesh = true;
  cluster.gpus_per_node = 8;
  cluster.nodes = 1;
  cluster.scale_up = 7 * 400'000'000'000;
  const auto graph = graph_of(cluster);
  network::Router router(graph, network::Routing::destination_mod_k, 1);
  const Communicator node = step::communicator_of(router, {0, 1, 2, 3, 4, 5, 6, 7}, 8);
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather})
    for (const double block : {0x1p20, 0x1p23, 0x1p26}) {
      const double steps = kind == Kind::all_reduce ? 14 : 7, bytes = 8 * block;
      Shape shape{kind, Algorithm::ring, 8, static_cast<std::int64_t>(bytes), 8};
      shape.protocol = Protocol::calibrated_simple;
      shape.node_mesh = true;
      shape.channels = mesh_rings(8);
      const Calibration c = calibration();
      shape.calibrated = calibrated_costs(c, LibraryVersion::v2_29, node, shape, Algorithm::ring);
      const double expected = c.launch_us + block / c.copy_gb_per_s * 1e-3 + c.fill_us * bytes / (bytes + (24 << 20)) +
                              pipeline(steps, c.hop_us, block / (7 * 50) * 1e-3);
      INFO(shape.text() << " " << expected);
      CHECK(static_cast<double>(simulated(shape, graph)) / 1e6 == Approx(expected).epsilon(0.01));
    }
}

TEST_CASE("RCCL's tuner takes LL for small vectors, and Simple from where its latencies and rates say, never LL128") {
  constexpr TunerInput kMi300x{Architecture::cdna, LibraryVersion::v2_29, 448};
  const auto us = [&](Protocol protocol, double bytes) {
    return tuner_us(kMi300x, Kind::all_reduce, Algorithm::ring, protocol, 8, 8, static_cast<std::int64_t>(bytes));
  };
  // 12 + 14 x 0.8 + S / (0.08 x 336 x 8 / 14) = 17 + 14 x 2.1 + S / (336 x 8 / 14), in us and GB/s.
  const double rate = 336e3 * 8 / 14, change = (17 + 29.4 - 12 - 11.2) / (1 / (0.08 * rate) - 1 / rate);
  CHECK(us(Protocol::calibrated_ll, 0.99 * change) < us(Protocol::calibrated_simple, 0.99 * change));
  CHECK(us(Protocol::calibrated_ll, 1.01 * change) > us(Protocol::calibrated_simple, 1.01 * change));
  CHECK(us(Protocol::calibrated_ll128, 1e6) > 1e9);
  // Over four nodes trees carry what rings would take long to begin with.
  constexpr TunerInput kNodes{Architecture::cdna, LibraryVersion::v2_29, 448, 50};
  const auto over_nodes = [&](Algorithm algorithm, double bytes) {
    return tuner_us(kNodes, Kind::all_reduce, algorithm, Protocol::calibrated_simple, 32, 8,
                    static_cast<std::int64_t>(bytes));
  };
  CHECK(over_nodes(Algorithm::double_tree, 0) == Approx(17 + 2 * (7 * 2.3 + 2 * 25)));
  CHECK(over_nodes(Algorithm::ring, 0) == Approx(17 + 6 * 320 + 56 * 2.1));
  CHECK(over_nodes(Algorithm::double_tree, 1e9) > over_nodes(Algorithm::ring, 1e9));
}
