// Collectives whose members send unequal amounts: all-to-alls by destination and by source, broadcasts and reductions
// from any root.
#include <numeric>

#include "core/collective/library/library.hpp"
#include "tests/core/collective/play_collective.hpp"

using namespace manyworlds::tests;

namespace {

constexpr std::uint32_t kMembers = 12, kPerNode = 4;

Shape all_to_all(Algorithm algorithm, std::vector<std::int64_t> bytes, bool by_source) {
  Shape shape{Kind::all_to_all, algorithm, kMembers, std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}),
              kPerNode};
  shape.split = {std::move(bytes), by_source};
  return shape;
}

/// Some members get or send nothing at all.
std::vector<std::int64_t> drawn_bytes(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> bytes;
  for (std::uint32_t i = 0; i < kMembers; ++i) bytes.push_back(random() % 4 == 0 ? 0 : 1 + random() % 1'000);
  return bytes;
}

Communicator twelve() {
  Communicator who;
  who.members = kMembers;
  who.per_node = kPerNode;
  who.intra_node = {1'600'000'000'000, 600'000};
  who.inter_node = {200'000'000'000, 3'000'000};
  return who;
}

}  // namespace

TEST_CASE("an all-to-all of unequal shares brings every member what each other has for it") {
  for (const Algorithm algorithm : {Algorithm::pairwise, Algorithm::node_aware, Algorithm::hybrid_ep})
    for (const bool by_source : {false, true})
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const Shape shape = all_to_all(algorithm, drawn_bytes(seed), by_source);
        INFO(shape.text());
        Trace trace;
        const Dag dag = build(shape, &trace);
        play_contributions(shape, dag, trace, seed);
        std::vector<std::int64_t> carried(dag.transfers.size(), 0);
        for (const Trace::Range& range : trace.ranges) carried[range.transfer] += range.end - range.begin;
        for (std::size_t i = 0; i < carried.size(); ++i) REQUIRE(carried[i] == dag.transfers[i].bytes);
      }
}

TEST_CASE("between nodes as many bytes travel as there are for other nodes, whichever way they take") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const std::vector<std::int64_t> bytes = drawn_bytes(seed);
    // Each share is for, or from, the 8 members of other nodes.
    const std::int64_t expected = 8 * std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
    for (const Algorithm algorithm : {Algorithm::pairwise, Algorithm::node_aware, Algorithm::hybrid_ep})
      for (const bool by_source : {false, true}) {
        const Dag dag = build(all_to_all(algorithm, bytes, by_source));
        std::int64_t inter_node = 0;
        for (const Transfer& transfer : dag.transfers) {
          const auto& [from, to] = dag.pairs[transfer.pair];
          if (from / kPerNode == to / kPerNode) continue;
          inter_node += transfer.bytes;
          if (algorithm != Algorithm::pairwise) CHECK(from % kPerNode == to % kPerNode);  // along rails
        }
        CHECK(inter_node == expected);
      }
  }
}

TEST_CASE("pairwise, everybody sends a member its share, or a member everybody its own") {
  const std::vector<std::int64_t> bytes = drawn_bytes(3);
  for (const bool by_source : {false, true}) {
    const Dag dag = build(all_to_all(Algorithm::pairwise, bytes, by_source));
    for (const Transfer& transfer : dag.transfers) {
      const auto& [from, to] = dag.pairs[transfer.pair];
      REQUIRE(transfer.bytes == bytes[by_source ? from : to]);
    }
  }
}

TEST_CASE("equal shares are the even operation, and unequal ones are predicted by their largest") {
  const Library library;
  const Shape even = choose_shape(library, twelve(), Kind::all_to_all, 12 * 500);
  CHECK(choose_shape(library, twelve(), Kind::all_to_all, 12 * 500, {std::vector<std::int64_t>(12, 500), false}) ==
        even);
  CHECK(choose_shape(library, twelve(), Kind::all_to_all, 12 * 500, {std::vector<std::int64_t>(12, 500), true}) ==
        even);
  std::vector<std::int64_t> bytes(12, 400);
  bytes[7] = 1'600;
  const Shape uneven = choose_shape(library, twelve(), Kind::all_to_all, 12 * 500, {bytes, false});
  CHECK(uneven != even);
  CHECK(uneven != choose_shape(library, twelve(), Kind::all_to_all, 12 * 500, {bytes, true}));
  CHECK(predicted_ps(uneven, twelve()) ==
        predicted_ps(choose_shape(library, twelve(), Kind::all_to_all, 12 * 1'600), twelve()));
}

TEST_CASE("a broadcast begins and a reduction ends at any root, one chain long") {
  for (const Kind kind : {Kind::broadcast, Kind::reduce})
    for (const Algorithm algorithm : {Algorithm::chain, Algorithm::binomial_tree})
      for (std::uint32_t root = 0; root < kMembers; ++root) {
        if (!supports(algorithm, kind)) continue;
        Shape shape{kind, algorithm, kMembers, 10'007, kPerNode};
        shape.split = rooted_split(root, kMembers, 10'007);
        INFO(shape.text());
        REQUIRE(shape.root() == root);
        for (const std::int64_t chunk : {0, 3'000}) {
          shape.chunk_bytes = chunk;
          Trace trace;
          const Dag dag = build(shape, &trace);
          play_contributions(shape, dag, trace, root);
          std::int64_t sent = 0;
          for (const Transfer& transfer : dag.transfers) sent += transfer.bytes;
          CHECK(sent == (kMembers - 1) * 10'007);
        }
      }
  CHECK(supports(Algorithm::chain, Kind::reduce));
  Library library;
  library.reduce = Algorithm::automatic;  // a chain is what there is
  CHECK(choose_shape(library, twelve(), Kind::reduce, 99, rooted_split(5, kMembers, 99)).text() ==
        "reduce chain n=12 99 B root=5");
  CHECK(choose_shape(library, twelve(), Kind::broadcast, 99, rooted_split(0, kMembers, 99)) ==
        choose_shape(library, twelve(), Kind::broadcast, 99));
}
