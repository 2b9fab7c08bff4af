// Queue pairs: what connections between nodes send over several hashed paths, against plain counts, single queue pairs
// and other fidelities.
#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "core/base/hash.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/step/network/critical_paths.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using collective::Dag;
using collective::Shape;

namespace {

Shape draw_shape(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  const auto& all = collective::algorithms();
  const auto& info = all[below(all.size())];
  Shape shape{info.kinds[below(info.kinds.size())], info.algorithm};
  shape.per_node = 1 + below(3);
  shape.members = shape.per_node * (2 + below(4));
  shape.bytes = below(4) == 0 ? below(20) : 1 + below(3'000'000);
  if (info.multi_channel) shape.channels = 1 + below(3);
  if (info.pipelined && below(2) == 0) shape.chunk_bytes = 100'000 + below(300'000);
  if (info.latency_group == collective::LatencyGroup::in_switch) shape.rail_switches = shape.per_node < shape.members;
  return shape;
}

/// Bytes between every two ends, and how many connections carry them.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::int64_t, std::size_t>> sums_of(const Dag& dag) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::int64_t, std::size_t>> result;
  for (const auto& ends : dag.pairs) ++result[ends].second;
  for (const auto& transfer : dag.transfers) result[dag.pairs[transfer.pair]].first += transfer.bytes;
  return result;
}

step::Configuration with_queue_pairs(step::Configuration configuration, std::uint64_t seed) {
  configuration.collectives.qps_per_connection = 2 + static_cast<std::int64_t>(seed % 3);
  configuration.collectives.split_data_on_qps = seed % 2 == 0;
  configuration.collectives.message_bytes = seed % 5 == 0 ? 8'192 : 100'000;
  configuration.transport.routing = network::Routing::ecmp_hash;
  return configuration;
}

}  // namespace

TEST_CASE("queue pairs carry what their connection carries, inside nodes and to switches there is one") {
  std::mt19937_64 random(20261126);
  std::size_t divided = 0;
  for (int round = 0; round < 400; ++round) {
    Shape shape = draw_shape(random);
    const auto one = sums_of(collective::build(shape));
    shape.queue_pairs = 2 + static_cast<std::uint32_t>(random() % 4);
    shape.message_bytes = random() % 2 == 0 ? 0 : 1 + static_cast<std::int64_t>(random() % 200'000);
    INFO(shape.text() << " per node " << shape.per_node);
    const Dag dag = collective::build(shape);
    REQUIRE(dag.message.size() == dag.transfers.size());
    const auto several = sums_of(dag);
    REQUIRE(several.size() == one.size());
    for (const auto& [ends, sum] : one) {
      const auto& [bytes, connections] = several.at(ends);
      REQUIRE(bytes == sum.first);
      const bool inside = std::max(ends.first, ends.second) >= shape.members ||
                          ends.first / shape.per_node == ends.second / shape.per_node;
      REQUIRE(connections >= sum.second);
      REQUIRE(connections <= sum.second * (inside ? 1 : shape.queue_pairs));
      divided += connections > sum.second;
    }
  }
  CHECK(divided > 400);
}

TEST_CASE("a message is divided evenly over all queue pairs, or whole messages go over one after the other") {
  Shape shape{collective::Kind::send, collective::Algorithm::ring, 2, 1'000'003};
  shape.queue_pairs = 4;
  const auto bytes_of = [&] {
    std::vector<std::int64_t> result;
    for (const auto& transfer : collective::build(shape).transfers) result.push_back(transfer.bytes);
    return result;
  };
  CHECK(bytes_of() == std::vector<std::int64_t>{250'001, 250'001, 250'001, 250'000});
  shape.message_bytes = 300'000;  // three of these and a rest
  CHECK(bytes_of() == std::vector<std::int64_t>{300'000, 300'000, 300'000, 100'003});
  shape.message_bytes = 150'000;  // six of these and a rest of 100,003: the fifth to seventh go round again
  CHECK(bytes_of() == std::vector<std::int64_t>{300'000, 300'000, 250'003, 150'000});
  shape.message_bytes = 1'000'000;
  CHECK(bytes_of() == std::vector<std::int64_t>{1'000'000, 3});
  shape.bytes = 0;
  CHECK(bytes_of() == std::vector<std::int64_t>{0});
  // A ring goes on where the transfer before ended: rounds of one message each use all queue pairs in turn.
  Shape ring{collective::Kind::all_gather, collective::Algorithm::ring, 6, 6'000};
  ring.queue_pairs = 4, ring.message_bytes = 1'000;
  const Dag dag = collective::build(ring);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> in_turn;  // pairs by ends
  for (const auto& transfer : dag.transfers) in_turn[dag.pairs[transfer.pair]].push_back(transfer.pair);
  for (const auto& [ends, pairs] : in_turn) {
    REQUIRE(pairs.size() == 5);
    CHECK(std::set(pairs.begin(), pairs.begin() + 4).size() == 4);
    CHECK(pairs[4] == pairs[0]);
  }
}

TEST_CASE("queue pairs collide as often as a direct loop over their hashes says, and as chance does") {
  constexpr std::uint32_t kSpines = 4, kGroups = 4'096;
  Cluster cluster;
  cluster.nodes = 2, cluster.gpus_per_node = 1, cluster.rails = false, cluster.spines = kSpines;
  const auto graph = graph_of(cluster);
  network::Router router(graph, network::Routing::ecmp_hash, 1);
  for (const std::uint32_t queue_pairs : {1u, 2u, 4u}) {
    Shape shape{collective::Kind::send, collective::Algorithm::ring, 2, 4'000'000};
    shape.queue_pairs = queue_pairs;
    const Dag dag = collective::build(shape);
    REQUIRE(dag.pairs.size() == queue_pairs);
    std::uint32_t on_one = 0;
    for (std::uint64_t group = 0; group < kGroups; ++group) {
      std::map<std::uint32_t, std::int64_t> routed, counted;  // by spine: bytes
      for (std::uint32_t pair = 0; pair < queue_pairs; ++pair) {
        const auto route = step::route_of(router, {dag.pairs, dag.switches}, {0, 1}, pair, group << 32 | pair);
        const std::uint32_t first_spine = static_cast<std::uint32_t>(graph->vertices.size()) - kSpines;
        routed[graph->links[route.at(1)].to - first_spine] += dag.transfers[pair].bytes;
        counted[decision_hash(1, group << 32 | pair, 1) % kSpines] += 4'000'000 / queue_pairs;
      }
      REQUIRE(routed == counted);
      on_one += routed.size() == 1;
    }
    const double expected = std::pow(1.0 / kSpines, queue_pairs - 1.0), n = kGroups;
    CAPTURE(queue_pairs);
    CHECK(std::abs(on_one - n * expected) <= 5 * std::sqrt(n * expected * (1 - expected)));
  }
}

TEST_CASE("a message whose queue pairs share one way takes as long as with one, but for a packet of each") {
  std::mt19937_64 random(7);
  network::Transport transport;
  for (int round = 0; round < 200; ++round) {
    Cluster cluster;
    cluster.nodes = 2, cluster.gpus_per_node = 1, cluster.rails = false, cluster.spines = 1;
    cluster.uplink = 100'000'000'000 * (1 + static_cast<std::int64_t>(random() % 4));
    const auto graph = graph_of(cluster);
    network::Router router(graph, network::Routing::ecmp_hash, 1);
    Shape shape{collective::Kind::send, collective::Algorithm::ring, 2,
                static_cast<std::int64_t>(random() % 9'000'000)};
    const auto duration = [&] {
      const Dag dag = collective::build(shape);
      step::Connections connections;
      for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair)
        connections.routes.push_back(step::route_of(router, {dag.pairs, dag.switches}, {0, 1}, pair, pair));
      return step::uncontended(dag, connections, *graph, transport).drained;
    };
    const Time one = duration();
    shape.queue_pairs = 2 + static_cast<std::uint32_t>(random() % 7);
    shape.message_bytes = random() % 2 == 0 ? 0 : 100'000;
    INFO(shape.text());
    const Time packet = serialization_ps(4'160, 100'000'000'000);
    CHECK(std::abs(duration() - one) <= 4 * packet + shape.queue_pairs * packet);
  }
}

TEST_CASE("composed and coupled agree to the picosecond with queue pairs, and analytic steps are below them") {
  std::size_t episodes = 0, differ = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = undisturbed(draw_configuration(seed));
    configuration.transport.routing = network::Routing::ecmp_hash;
    const auto before = run_configuration(configuration, step::Composition::composed);
    configuration = with_queue_pairs(configuration, seed);
    const auto composed = run_configuration(configuration, step::Composition::composed);
    require_same_packets(composed, run_configuration(configuration, step::Composition::coupled));
    REQUIRE(run_at(configuration, network::Fidelity::packet, step::Ranks::representatives).step_ps == composed.step_ps);
    REQUIRE(run_at(configuration, network::Fidelity::analytic).step_ps <= composed.step_ps);
    episodes += composed.episodes.size();
    differ += composed.step_ps != before.step_ps;
  }
  CHECK(episodes > 30);
  CHECK(differ > 20);
}

TEST_CASE("steps with queue pairs have one answer of all ranks and of those that stand for them") {
  std::size_t merged = 0, slower = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = with_queue_pairs(undisturbed(draw_configuration(seed)), seed);
    const auto bound = run_at(configuration, network::Fidelity::analytic);
    for (const network::Fidelity fidelity : {network::Fidelity::analytic, network::Fidelity::fluid}) {
      const auto all = run_at(configuration, fidelity);
      REQUIRE(run_at(configuration, fidelity, step::Ranks::representatives).step_ps == all.step_ps);
      REQUIRE(all.step_ps >= bound.step_ps);
      slower += all.step_ps > bound.step_ps;
    }
    step::SimulationContext context;
    step::Configuration fluid = configuration;
    fluid.transport.fidelity = network::Fidelity::fluid;
    merged += !context.compile(fluid, step::Ranks::representatives).has_all_ranks();
  }
  CHECK(merged > 10);
  CHECK(slower > 10);
}
