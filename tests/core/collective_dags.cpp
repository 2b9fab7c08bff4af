// Collectives as DAGs: who ends up with what, played by a plain interpreter of "a chunk travels".
#include <catch2/catch.hpp>

#include <map>
#include <numeric>
#include <set>

#include "core/collective/dag.hpp"

using namespace manyworlds::core::collective;

namespace {

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = [] {
    std::vector<Shape> made;
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all})
      for (const Algorithm algorithm : {Algorithm::ring, Algorithm::two_level})
        for (const auto& [members, per_node] : {std::pair{2u, 1u}, {3u, 1u}, {8u, 4u}, {12u, 4u}, {16u, 8u}, {6u, 6u}})
          for (const std::int64_t bytes : {0, 5, 96'000, 96'007})
            made.push_back({kind, algorithm, members, bytes, per_node});
    return made;
  }();
  return all;
}

// Completes transfers in some legal order and calls `visit` on each; checks that all of them can complete.
template <class Visit>
void play(const Dag& dag, Visit visit) {
  std::vector<std::uint16_t> waits = dag.waits;
  std::vector<std::uint32_t> ready;
  const auto satisfy = [&](std::uint32_t transfer) {
    if (--waits[transfer] == 0) ready.push_back(transfer);
  };
  for (std::uint32_t member = 0; member < dag.members; ++member)
    for (std::uint32_t i = dag.entry_begin[member]; i < dag.entry_begin[member + 1]; ++i) satisfy(dag.entry[i]);
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::uint32_t transfer = ready.back();
    ready.pop_back();
    ++done;
    visit(transfer);
    for (std::uint32_t i = dag.successors_begin[transfer]; i < dag.successors_begin[transfer + 1]; ++i)
      satisfy(dag.successors[i]);
  }
  REQUIRE(done == dag.transfers.size());
}

std::vector<std::int64_t> sent_by_member(const Dag& dag) {
  std::vector<std::int64_t> sent(dag.members, 0);
  for (const Transfer& transfer : dag.transfers) sent[dag.pairs[transfer.pair].first] += transfer.bytes;
  return sent;
}

}  // namespace

TEST_CASE("every collective can complete, and no transfer goes from a member to itself") {
  for (const Shape& shape : shapes()) {
    INFO(shape.text() << " per node " << shape.per_node);
    const Dag dag = build(shape);
    play(dag, [&](std::uint32_t transfer) {
      const auto& [from, to] = dag.pairs[dag.transfers[transfer].pair];
      REQUIRE(from != to);
      REQUIRE((from < shape.members && to < shape.members));
    });
  }
}

TEST_CASE("after any collective of reduction or gathering, what each member sent has reached every other") {
  // Knowledge spreads along transfers: the receiver then knows of all members the sender knew of.
  for (const Shape& shape : shapes()) {
    if (shape.kind == Kind::all_to_all) continue;
    INFO(shape.text() << " per node " << shape.per_node);
    const Dag dag = build(shape);
    std::vector<std::set<std::uint32_t>> knows(shape.members);
    for (std::uint32_t i = 0; i < shape.members; ++i) knows[i] = {i};
    play(dag, [&](std::uint32_t transfer) {
      const auto& [from, to] = dag.pairs[dag.transfers[transfer].pair];
      knows[to].insert(knows[from].begin(), knows[from].end());
    });
    for (const auto& known : knows) CHECK(known.size() == shape.members);
  }
}

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
  const Dag dag = build({Kind::all_to_all, Algorithm::ring, 6, 6 * 500, 1});
  CHECK(dag.transfers.size() == 30);
  CHECK(dag.pairs.size() == 30);
  for (const Transfer& transfer : dag.transfers) CHECK(transfer.bytes == 500);

  std::map<std::uint32_t, int> rounds_of;  // two transfers a round
  play(dag, [&](std::uint32_t transfer) {
    const auto& [from, to] = dag.pairs[dag.transfers[transfer].pair];
    CHECK(rounds_of[from] / 2 <= static_cast<int>((to + 6 - from) % 6 - 1));
    ++rounds_of[from], ++rounds_of[to];
  });
}
