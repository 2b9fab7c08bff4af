// Graphs of operations as programs: chains add nothing to a graph and leave out nothing of it, and both ends of a
// transfer agree.
#include "experiments/graphs/chain_cover.hpp"
#include "experiments/graphs/graph_programs.hpp"
#include "experiments/graphs/group_dimensions.hpp"
#include "tests/experiments/given_steps.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::graphs;

namespace {

GraphNode kernel(std::uint64_t id, double us, std::vector<std::uint32_t> parents = {}) {
  programs::KernelWork work;
  work.measured_us = us;
  return {id, "kernel", std::move(parents), work, kNoResource, us};
}

GraphNode transfer(std::uint64_t id, std::uint32_t peer, bool receives, std::uint64_t tag,
                   std::vector<std::uint32_t> parents = {}, std::int64_t bytes = 4096) {
  return {id, "transfer", std::move(parents), Transfer{peer, receives, bytes, tag}, kNoResource, 0};
}

/// By node, which nodes come before it: the plain closure of direct dependencies, in an order that has parents first.
std::vector<std::vector<bool>> closure(const std::vector<std::vector<std::uint32_t>>& parents,
                                       const std::vector<std::uint32_t>& order) {
  std::vector<std::vector<bool>> before(parents.size(), std::vector<bool>(parents.size()));
  for (const std::uint32_t node : order)
    for (const std::uint32_t parent : parents[node]) {
      before[node][parent] = true;
      for (std::size_t i = 0; i < before.size(); ++i)
        if (before[parent][i]) before[node][i] = true;
    }
  return before;
}

RankGraph draw_graph(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RankGraph graph{"drawn", {}};
  const std::size_t size = 1 + random() % 40;
  std::vector<std::uint32_t> ids(size);  // ids say nothing about the order
  for (std::uint32_t i = 0; i < size; ++i) ids[i] = i;
  std::shuffle(ids.begin(), ids.end(), random);
  const std::uint64_t density = 1 + random() % 8;
  for (std::uint32_t i = 0; i < size; ++i) {
    GraphNode node = kernel(ids[i], 1);
    if (random() % 4 == 0) node.work = programs::HostWork{1};
    if (random() % 6 == 0) node.work = std::monostate{};
    for (std::uint32_t parent = 0; parent < i; ++parent)
      if (random() % 8 < density && random() % 3 == 0) node.parents.push_back(parent);
    graph.nodes.push_back(node);
  }
  return graph;
}

}  // namespace

TEST_CASE("the streams of 500 drawn graphs have exactly the dependencies of these") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    const RankGraph graph = draw_graph(seed);
    const std::vector<std::uint32_t> order = execution_order(graph);
    const ChainCover cover = cover_by_chains(graph, order);
    std::vector<std::vector<std::uint32_t>> stated, given = cover.after;
    for (const GraphNode& node : graph.nodes) stated.push_back(node.parents);
    std::vector<std::uint32_t> last(cover.is_host.size(), kNoChain);
    for (const std::uint32_t node : order) {
      const std::uint32_t chain = cover.chain[node];
      if (chain == kNoChain) continue;
      REQUIRE(cover.is_host[chain] == std::holds_alternative<programs::HostWork>(graph.nodes[node].work));
      if (last[chain] != kNoChain) given[node].push_back(last[chain]);
      last[chain] = node;
    }
    const auto expected = closure(stated, order), found = closure(given, order);
    for (std::uint32_t one = 0; one < graph.nodes.size(); ++one)
      for (std::uint32_t other = 0; other < graph.nodes.size(); ++other)
        if (cover.chain[one] != kNoChain && cover.chain[other] != kNoChain)
          REQUIRE(expected[one][other] == found[one][other]);
    REQUIRE(cover.added == 0);
    for (std::uint32_t node = 0; node < graph.nodes.size(); ++node)  // and none twice
      for (const std::uint32_t one : cover.after[node])
        for (const std::uint32_t other : given[node]) REQUIRE(!found[other][one]);
  }
}

TEST_CASE("nodes start by their ids, and one after the other where they share a resource") {
  RankGraph graph{"g", {kernel(5, 3), kernel(1, 10), kernel(7, 1, {0}), kernel(0, 2, {1})}};
  CHECK(execution_order(graph) == std::vector<std::uint32_t>{1, 3, 0, 2});
  for (GraphNode& node : graph.nodes) node.resource = 0;
  // 1 runs until 10, then 0 (ready with 5, and smaller) until 12, then 5, then 7.
  CHECK(execution_order(graph) == std::vector<std::uint32_t>{1, 3, 0, 2});
  graph.nodes[1].resource = 1;  // 5 runs until 3, 7 until 4; 1 until 10, then 0
  CHECK(execution_order(graph) == std::vector<std::uint32_t>{1, 0, 2, 3});
  CHECK(cover_by_chains(graph, execution_order(graph)).added == 1);
}

TEST_CASE("a circle is told by its nodes") {
  const RankGraph graph{"g.et", {kernel(4, 1), kernel(5, 1, {0, 3}), kernel(6, 1, {1}), kernel(8, 1, {2})}};
  CHECK(error_of([&] { execution_order(graph); }) ==
        "g.et: has a circle of 3 dependencies: node 5 waits for node 8 waits for node 6 waits for node 5");
}

TEST_CASE("groups of one shape that share no rank are one dimension") {
  CHECK(dimensions_of({{0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1}, {0, 1, 2, 3}}) ==
        std::vector<std::uint32_t>{0, 0, 1, 1, 2, 3});
}

TEST_CASE("transfers of a pair have as few lanes as their order at both ends allows") {
  const auto ends = [](const std::vector<std::uint64_t>& tags) {
    std::vector<PairEnd> list;
    for (const std::uint64_t tag : tags) list.push_back({tag, 8});
    return list;
  };
  CHECK(lanes_of(ends({1, 2, 1}), ends({1, 2, 1})).of_sends == std::vector<std::uint32_t>{0, 0, 0});
  const Lanes crossed = lanes_of(ends({1, 2, 3}), ends({3, 1, 2}));
  CHECK(crossed.of_sends == std::vector<std::uint32_t>{0, 0, 1});
  CHECK(crossed.of_receives == std::vector<std::uint32_t>{1, 0, 0});
  CHECK(lanes_of(ends({3, 2, 1}), ends({1, 2, 3})).of_sends == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(!lanes_of(ends({1}), ends({2})).match);
  CHECK(!lanes_of(ends({1}), ends({})).match);
}

TEST_CASE("what no dependency orders runs at once, and a graph takes its longest path") {
  const std::vector<GraphNode> diamond{kernel(0, 10), kernel(1, 20, {0}), kernel(2, 30, {0}), kernel(3, 5, {1, 2})};
  const auto time_of = [](std::vector<GraphNode> nodes, std::uint32_t resource) {
    for (GraphNode& node : nodes) node.resource = resource;
    GraphPrograms job(2, {}, {});
    for (std::uint32_t rank = 0; rank < 2; ++rank) job.add(rank, {"g", nodes});
    const programs::Imported imported = job.finish("g");
    CHECK(imported.programs.programs.size() == 1);
    return step_of(imported.programs).step_ps;
  };
  CHECK(time_of(diamond, kNoResource) == 45'000'000);
  CHECK(time_of(diamond, 0) == 65'000'000);
}

TEST_CASE("transfers whose tags cross meet in lanes of their own") {
  GraphPrograms job(2, {}, {});
  job.add(0, {"g", {transfer(0, 1, false, 1), transfer(1, 1, false, 2, {0}, 1 << 20)}});
  job.add(1, {"g", {transfer(0, 0, true, 2, {}, 1 << 20), transfer(1, 0, true, 1)}});
  const programs::Imported imported = job.finish("g");
  CHECK(imported.programs.ranks.dimensions.size() == 2);
  CHECK(step_of(imported.programs).step_ps == transfer_alone(4096) + transfer_alone(1 << 20));
}

TEST_CASE("the ranks of a ring are one program, whatever their number") {
  for (const std::uint32_t ranks : {2u, 8u, 64u}) {
    GraphPrograms job(ranks, {}, {});
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      job.add(rank, {"g",
                     {kernel(0, 1), transfer(1, (rank + 1) % ranks, false, 0, {0}),
                      transfer(2, (rank + ranks - 1) % ranks, true, 0, {0}), kernel(3, 1, {1, 2})}});
    const programs::Imported imported = job.finish("g");
    CHECK(imported.programs.programs.size() == 1);
    CHECK(imported.programs.ranks.groups.size() == ranks);
    CHECK(step_of(imported.programs).step_ps > 2'000'000);
  }
}

TEST_CASE("a job whose ranks do not meet is refused") {
  const auto error = [](const std::vector<std::vector<GraphNode>>& ranks) {
    return error_of([&] {
      GraphPrograms job(static_cast<std::uint32_t>(ranks.size()), {{0, 1}}, {});
      for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) job.add(rank, {"g", ranks[rank]});
      job.finish("job");
    });
  };
  const auto call = [](std::int64_t bytes) {
    return GraphNode{0, "c", {}, GroupCall{0, core::collective::Kind::all_reduce, bytes}, kNoResource, 0};
  };
  CHECK(error({{transfer(0, 1, false, 1)}, {transfer(0, 0, true, 2)}}) ==
        "job: 1 sends of rank 0 to rank 1 do not match 1 receives there by tag and bytes: with tag 1 there are 1 sends "
        "and 0 receives");
  CHECK(error({{transfer(0, 0, false, 1)}, {kernel(0, 1)}}) == "g: node 0 is a transfer of rank 0 with rank 0 of 2");
  CHECK(error({{call(8)}, {call(16)}}).find("job: ranks 0 and 1 do not do the same") == 0);
  CHECK(error({{call(8)}, {call(8)}, {call(8)}}).find("a group that rank 2 is not in") != std::string::npos);
}
