// Collectives as DAGs: bytes, steps and connections against what their papers say.
#include <numeric>

#include "tests/core/collective/play_collective.hpp"

using namespace manyworlds::tests;

namespace {

std::vector<std::int64_t> sent_by_member(const Dag& dag) {
  std::vector<std::int64_t> sent(dag.members, 0);
  for (const Transfer& transfer : dag.transfers) sent[dag.pairs[transfer.pair].first] += transfer.bytes;
  return sent;
}

std::int64_t most(const std::vector<std::int64_t>& values) {
  return *std::max_element(values.begin(), values.end());
}

/// Steps: the most transfers that follow one after another.
std::uint64_t steps(const Dag& dag) {
  // When each takes one unit of time, one that starts now ends a step after the last that has ended.
  std::uint64_t now = 0;
  std::vector<std::uint64_t> ends(dag.transfers.size());
  play(
      dag, [](std::uint32_t) { return std::uint64_t{1}; }, [&](std::uint32_t transfer) { ends[transfer] = now + 1; },
      [&](std::uint32_t transfer) { now = ends[transfer]; });
  return now;
}

}  // namespace

TEST_CASE("a ring moves (n - 1) / n of the bytes over each connection, twice for an all-reduce") {
  for (const std::uint32_t n : {2u, 3u, 8u, 16u})
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter}) {
      const std::int64_t bytes = 4096 * n;
      const Dag dag = build({kind, Algorithm::ring, n, bytes, 1});
      for (const std::int64_t sent : sent_by_member(dag))
        CHECK(sent == (kind == Kind::all_reduce ? 2 : 1) * 4096 * (n - 1));
      CHECK(dag.pairs.size() == n);
    }
}

TEST_CASE("unequal chunks add up: a ring of any size passes every byte n - 1 times") {
  for (const std::int64_t bytes : {1, 7, 1000, 4099})
    for (const std::uint32_t n : {2u, 5u, 8u}) {
      const auto sent = sent_by_member(build({Kind::all_gather, Algorithm::ring, n, bytes, 1}));
      CHECK(std::accumulate(sent.begin(), sent.end(), std::int64_t{0}) == bytes * (n - 1));
    }
}

TEST_CASE("the two-level all-reduce sends 1 / per_node of the bytes between nodes, along rails only") {
  const std::int64_t bytes = 8 * 12 * 100;
  const Shape shape{Kind::all_reduce, Algorithm::two_level, 12, bytes, 4};
  const Dag dag = build(shape);
  std::int64_t between = 0;
  for (const Transfer& transfer : dag.transfers) {
    const auto& [from, to] = dag.pairs[transfer.pair];
    if (from / 4 == to / 4) continue;
    CHECK(from % 4 == to % 4);
    between += transfer.bytes;
  }
  CHECK(between == 12 * (2 * 2 * (bytes / 4) / 3));  // each member: an all-reduce of its quarter over three nodes
}

TEST_CASE("a ring that passes through nodes leaves each to a member of equal local index") {
  for (const std::uint32_t nodes : {2u, 4u, 6u}) {
    const Dag dag = build({Kind::all_reduce, Algorithm::ring, nodes * 8, 1 << 20, 8});
    std::uint32_t crossings = 0;
    for (const auto& [from, to] : dag.pairs) {
      if (from / 8 == to / 8) continue;
      ++crossings;
      CHECK(from % 8 == to % 8);
    }
    CHECK(crossings == nodes);
  }
}

TEST_CASE("pairwise all-to-all gives every member its part of every other, one partner at a time") {
  const Dag dag = build({Kind::all_to_all, Algorithm::pairwise, 6, 6 * 500, 1});
  CHECK(dag.transfers.size() == 30);
  CHECK(dag.pairs.size() == 30);
  for (const Transfer& transfer : dag.transfers) CHECK(transfer.bytes == 500);

  std::map<std::uint32_t, int> rounds_of;  // two transfers a round
  play(
      dag, [](std::uint32_t) { return std::uint64_t{1}; }, [](std::uint32_t) {},
      [&](std::uint32_t transfer) {
        const auto& [from, to] = dag.pairs[dag.transfers[transfer].pair];
        CHECK(rounds_of[from] / 2 <= static_cast<int>((to + 6 - from) % 6 - 1));
        ++rounds_of[from], ++rounds_of[to];
      });
}

TEST_CASE("halving and doubling sends what a ring sends in 2 log n steps (Thakur et al. 2005)") {
  for (const std::uint32_t log : {1u, 2u, 3u, 5u, 8u}) {
    const std::uint32_t n = 1u << log;
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter}) {
      const Dag dag = build({kind, Algorithm::halving_doubling, n, 100 * n, 1});
      const std::uint32_t passes = kind == Kind::all_reduce ? 2 : 1;
      for (const std::int64_t sent : sent_by_member(dag)) CHECK(sent == passes * 100 * (n - 1));
      CHECK(steps(dag) == passes * log);
    }
  }
  // Beyond a power of two: those left over hand their vector over first and are given the result last.
  for (const std::uint32_t n : {3u, 5u, 6u, 7u, 12u, 33u}) {
    std::uint32_t log = 0;
    while (2u << log <= n) ++log;
    CHECK(steps(build({Kind::all_reduce, Algorithm::halving_doubling, n, 1'000, 1})) == 2 * log + 2);
  }
}

TEST_CASE("halving and doubling keeps all but 1 / per_node of its bytes inside nodes of a power of two") {
  const std::int64_t bytes = 32 * 1'000;
  const Dag dag = build({Kind::all_reduce, Algorithm::halving_doubling, 32, bytes, 8});
  std::vector<std::int64_t> between(32, 0);
  for (const Transfer& transfer : dag.transfers) {
    const auto& [from, to] = dag.pairs[transfer.pair];
    if (from / 8 == to / 8) continue;
    CHECK(from % 8 == to % 8);
    between[from] += transfer.bytes;
  }
  for (const std::int64_t sent : between) CHECK(sent == 2 * (bytes / 8) * 3 / 4);
}

TEST_CASE("a parameter server takes and sends its share once for every other member, in two steps") {
  for (const std::uint32_t n : {2u, 3u, 8u, 12u})
    for (const std::uint32_t servers : {1u, 2u, 3u, n}) {
      if (n % servers != 0) continue;
      Shape shape{Kind::all_reduce, Algorithm::parameter_server, n, 1'200, 1};
      shape.channels = servers;
      const Dag dag = build(shape);
      CHECK(steps(dag) == 2);
      const std::int64_t share = 1'200 / servers;
      const std::vector<std::int64_t> sent = sent_by_member(dag);
      for (std::uint32_t member = 0; member < n; ++member) {
        const bool serves = member % (n / servers) == 0;
        CHECK(sent[member] == share * (serves ? servers - 1 + n - 1 : servers));
      }
      // Qi et al. 2017 (Paleo): OneToAll takes 2 b (n - 1) where one server has all.
      CHECK(info_of(Algorithm::parameter_server).cost(shape, {n, 1, n, 1'200, servers, 2}).inter_node_bytes ==
            2 * share * (n - 1));
    }
}

TEST_CASE("recursive doubling sends the whole vector log n times") {
  for (const std::uint32_t log : {1u, 3u, 6u}) {
    const Dag dag = build({Kind::all_reduce, Algorithm::recursive_doubling, 1u << log, 777, 1});
    for (const std::int64_t sent : sent_by_member(dag)) CHECK(sent == 777 * log);
    CHECK(steps(dag) == log);
  }
}

TEST_CASE("no member of a double binary tree sends or receives more than twice its vector") {
  for (std::uint32_t n = 2; n <= 130; ++n) {
    INFO("n " << n);
    const std::int64_t bytes = 2'000;
    const Dag dag = build({Kind::all_reduce, Algorithm::double_tree, n, bytes, 1});
    std::vector<std::int64_t> received(n, 0);
    for (const Transfer& transfer : dag.transfers) received[dag.pairs[transfer.pair].second] += transfer.bytes;
    // Up: half of the vector in each tree. Down: to two children in the one tree where it is an inner node.
    CHECK(most(sent_by_member(dag)) <= 2 * bytes);
    CHECK(most(received) <= 2 * bytes);
    CHECK(dag.transfers.size() == 2 * 2 * (n - 1));
    std::uint32_t log = 0;
    while (1u << log < n) ++log;
    CHECK(steps(dag) <= 2 * (log + 1));  // as deep as a balanced tree, and one for the root above it; up and down
  }
}

TEST_CASE("both trees of a channel use its rail, so that a NIC carries at most twice its part of the vector") {
  const std::int64_t bytes = 16'000;
  const Dag dag = build({Kind::all_reduce, Algorithm::double_tree, 32, bytes, 8, 8});
  std::vector<std::int64_t> sent(32, 0), received(32, 0);
  for (const Transfer& transfer : dag.transfers) {
    const auto [from, to] = dag.pairs[transfer.pair];
    if (from / 8 == to / 8) continue;
    sent[from] += transfer.bytes;
    received[to] += transfer.bytes;
  }
  // An inner node of one tree sends to its parent and to two children there, and to its parent in the other tree.
  CHECK(most(sent) == 2 * bytes / 8);
  CHECK(most(received) == 2 * bytes / 8);
}

TEST_CASE("the trees of a channel connect nodes along one rail") {
  const Dag dag = build({Kind::all_reduce, Algorithm::double_tree, 32, 1'000, 8, 2});
  std::set<std::uint32_t> used;
  for (const auto& [from, to] : dag.pairs)
    if (from / 8 != to / 8) {
      CHECK(from % 8 == to % 8);
      used.insert(from % 8);
    }
  CHECK(used == std::set<std::uint32_t>{0, 4});
}

TEST_CASE("direct collectives take one step for each half and send what a ring sends") {
  for (const std::uint32_t n : {2u, 5u, 16u})
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter}) {
      const Dag dag = build({kind, Algorithm::direct, n, 100 * n, 1});
      const std::uint32_t passes = kind == Kind::all_reduce ? 2 : 1;
      CHECK(steps(dag) == passes);
      for (const std::int64_t sent : sent_by_member(dag)) CHECK(sent == passes * 100 * (n - 1));
    }
  // Joints keep a direct all-reduce at n^2 edges.
  const std::uint32_t n = 256;
  CHECK(build({Kind::all_reduce, Algorithm::direct, n, 1'000, 1}).successors.size() < 5 * n * n);
}

TEST_CASE("a node-aware all-to-all sends per_node times fewer and larger messages between nodes, along rails") {
  const std::uint32_t n = 32, p = 8;
  const Dag pairwise = build({Kind::all_to_all, Algorithm::pairwise, n, n * 100, p});
  const Dag aware = build({Kind::all_to_all, Algorithm::node_aware, n, n * 100, p});
  const auto between = [&](const Dag& dag) {
    std::pair<std::uint32_t, std::int64_t> sum{0, 0};
    for (const Transfer& transfer : dag.transfers) {
      const auto& [from, to] = dag.pairs[transfer.pair];
      if (from / p != to / p) ++sum.first, sum.second += transfer.bytes;
    }
    return sum;
  };
  CHECK(between(aware).first * p == between(pairwise).first);
  CHECK(between(aware).second == between(pairwise).second);
  for (const auto& [from, to] : aware.pairs) CHECK((from / p == to / p || from % p == to % p));
}

TEST_CASE("tokens cross to each node once, along a rail, and are handed on to the members that want them") {
  const std::uint32_t n = 32, p = 8, nodes = n / p;
  Shape shape{Kind::all_to_all, Algorithm::hybrid_ep, n, n * 100, p};
  shape.node_bytes = 250;  // less than 8 x 100: what several members of a node want goes once
  const Dag dag = build(shape);
  std::vector<std::int64_t> by_rail(n, 0), inside(n, 0);
  for (const Transfer& transfer : dag.transfers) {
    const auto& [from, to] = dag.pairs[transfer.pair];
    (from / p == to / p ? inside : by_rail)[from] += transfer.bytes;
    CHECK((from / p == to / p || from % p == to % p));
  }
  CHECK(by_rail == std::vector<std::int64_t>(n, (nodes - 1) * 250));
  // What came from its peers and its own tokens, to all its neighbours.
  CHECK(inside == std::vector<std::int64_t>(n, nodes * (p - 1) * 100));
  shape.node_bytes = 0;
  std::int64_t between = 0;
  const Dag apart = build(shape);
  for (const Transfer& transfer : apart.transfers)
    if (const auto& [from, to] = apart.pairs[transfer.pair]; from / p != to / p) between += transfer.bytes;
  CHECK(between == n * (n - p) * 100);
}

TEST_CASE("broadcasts: a binomial tree takes log n steps, a chain n - 1, and each sends the vector n - 1 times") {
  for (const std::uint32_t n : {2u, 3u, 8u, 13u, 32u}) {
    std::uint32_t log = 0;
    while (1u << log < n) ++log;
    for (const Algorithm algorithm : {Algorithm::chain, Algorithm::binomial_tree}) {
      const Dag dag = build({Kind::broadcast, algorithm, n, 999, 1});
      CHECK(steps(dag) == (algorithm == Algorithm::chain ? n - 1 : log));
      const auto sent = sent_by_member(dag);
      CHECK(std::accumulate(sent.begin(), sent.end(), std::int64_t{0}) == 999 * (n - 1));
    }
  }
}

TEST_CASE("with chunks a chain is full after n - 1 of them: steps are chunks plus members, not their product") {
  Shape shape{Kind::broadcast, Algorithm::chain, 9, 100'000, 1};
  shape.chunk_bytes = 1'000;
  // Two chunks are under way on a connection, so a step hands on up to two.
  const Dag dag = build(shape);
  CHECK(dag.transfers.size() == 8 * 100);
  CHECK(steps(dag) == 8 - 1 + 50);
}

TEST_CASE("the channels of a ring enter and leave nodes at GPUs of their own") {
  Shape shape{Kind::all_reduce, Algorithm::ring, 32, 1 << 20, 8};
  for (const std::uint32_t channels : {2u, 4u, 8u}) {
    shape.channels = channels;
    const Dag dag = build(shape);
    CHECK(dag.pairs.size() == 32 * channels);
    std::map<std::uint32_t, int> leaving;  // connections that leave a node at a GPU
    for (const auto& [from, to] : dag.pairs)
      if (from / 8 != to / 8) {
        CHECK(from % 8 == to % 8);
        ++leaving[from];
      }
    for (const auto& [gpu, connections] : leaving) CHECK(connections <= 1);
    CHECK(leaving.size() == 4 * channels);
  }
}

TEST_CASE("a ring of 1,024 members is as small as it was: 16 bytes a transfer, one edge for data and one for order") {
  CHECK(sizeof(Transfer) == 16);
  const std::uint32_t n = 1'024;
  const Dag dag = build({Kind::all_reduce, Algorithm::ring, n, 1 << 30, 8});
  CHECK(dag.transfers.size() == 2 * (n - 1) * n);
  CHECK(dag.successors.size() == 2 * (dag.transfers.size() - n));
  CHECK(dag.entry.size() == 2 * n);  // only the first round waits for members to enter
}

TEST_CASE("protocols put flags among the data and latencies before transfers, as NCCL's figures say") {
  const std::int64_t chunk = 1'200;
  Shape shape{Kind::all_reduce, Algorithm::ring, 4, 4 * chunk, 2};
  const auto facts = [&](Protocol protocol) {
    shape.protocol = protocol;
    const Dag dag = build(shape);
    std::set<std::uint32_t> inside, between;
    for (const Transfer& transfer : dag.transfers) {
      const auto& [from, to] = dag.pairs[transfer.pair];
      (from / 2 == to / 2 ? inside : between).insert(transfer.delay_ps);
      CHECK(transfer.bytes == dag.transfers.front().bytes);
    }
    CHECK((inside.size() == 1 && between.size() == 1));
    return std::tuple(dag.launch_ps, *inside.begin(), *between.begin(), dag.transfers.front().bytes);
  };
  using manyworlds::core::Time;
  CHECK(facts(Protocol::none) == std::tuple(Time{0}, 0u, 0u, chunk));
  CHECK(facts(Protocol::ll) == std::tuple(Time{6'600'000}, 600'000u, 2'700'000u, chunk * 2));
  CHECK(facts(Protocol::ll128) == std::tuple(Time{14'000'000}, 1'900'000u, 4'000'000u, chunk * 128 / 120));
  CHECK(facts(Protocol::simple) == std::tuple(Time{8'400'000}, 3'400'000u, 14'000'000u, chunk));
}

TEST_CASE("in a switch every member sends its vector once and its shard once more, and receives as much (NVLS)") {
  const std::int64_t bytes = 8 * 1'000;
  const Dag dag = build({Kind::all_reduce, Algorithm::in_switch, 8, bytes, 8});
  CHECK(dag.switches.size() == 1);
  std::vector<std::int64_t> sent(8, 0), received(8, 0);
  for (const Transfer& transfer : dag.transfers) {
    const auto& [from, to] = dag.pairs[transfer.pair];
    CHECK((from < 8) != (to < 8));  // members speak to the switch alone
    (from < 8 ? sent[from] : received[to]) += transfer.bytes;
  }
  for (std::uint32_t i = 0; i < 8; ++i) {
    CHECK(sent[i] == bytes + bytes / 8);
    CHECK(received[i] == bytes + bytes / 8 - bytes / 8);  // its own shard it has
  }
}

TEST_CASE("a switch that a rail shares halves what its members send: the shard once, not twice (SHARP)") {
  Shape shape{Kind::all_reduce, Algorithm::in_switch, 32, 32 * 1'000, 1};
  shape.rail_switches = true;
  const Dag dag = build(shape);
  std::vector<std::int64_t> sent(32, 0);
  for (const Transfer& transfer : dag.transfers)
    if (dag.pairs[transfer.pair].first < 32) sent[dag.pairs[transfer.pair].first] += transfer.bytes;
  for (const std::int64_t each : sent) CHECK(each == shape.bytes);
}

TEST_CASE("empty and tiny operations complete, whatever carries them out") {
  for (const AlgorithmInfo& info : algorithms())
    for (const Kind kind : info.kinds)
      for (const std::uint32_t n : {2u, 3u, 8u, 12u})
        for (const std::int64_t bytes : {0, 1, 7}) {
          Shape shape{kind, info.algorithm, n, bytes, n % 4 == 0 ? 4u : 1u};
          shape.rail_switches = info.latency_group == LatencyGroup::in_switch && shape.per_node < n;
          shape.chunk_bytes = info.pipelined ? 3 : 0;
          shape.channels = info.multi_channel ? 2 : 1;
          INFO(shape.text());
          CHECK(steps(build(shape)) >= 1);
        }
}
