// Every algorithm of every kind, played with sets of contributions: all of them arrive, once, whatever transfers take.
#include "tests/core/collective/play_collective.hpp"

using namespace manyworlds::tests;

namespace {

struct Variant {
  std::uint32_t channels;
  std::int64_t chunk_bytes;
};

/// Calls `visit` with every algorithm x kind x members x members per node, plain, in channels and chunks, and
/// over queue pairs.
template <class Visit>
void every_shape(std::initializer_list<std::uint32_t> all_members, std::int64_t bytes_per_member, Visit visit) {
  for (const AlgorithmInfo& info : algorithms())
    for (const Kind kind : info.kinds)
      for (const std::uint32_t members : all_members)
        for (std::uint32_t per_node = 1; per_node <= members; ++per_node) {
          if (members % per_node != 0) continue;
          Shape shape{kind, info.algorithm, members, bytes_per_member * members + members / 2, per_node};
          if (info.latency_group == LatencyGroup::in_switch) {
            shape.rail_switches = per_node < members;
            visit(shape);
            shape.rail_switches = false;
            if (per_node == 1) continue;
          }
          visit(shape);
          for (const Variant& variant : {Variant{2, 0}, {3, 7}, {1, 5}}) {
            shape.channels = info.multi_channel ? variant.channels : 1;
            shape.chunk_bytes = info.pipelined ? variant.chunk_bytes : 0;
            if (shape.channels > 1 || shape.chunk_bytes > 0) visit(shape);
          }
          if (per_node < members) {
            shape.channels = 1, shape.chunk_bytes = 0, shape.queue_pairs = 3;
            visit(shape);
            shape.message_bytes = 4;
            visit(shape);
            shape.queue_pairs = 1, shape.message_bytes = 0;
          }
          if (info.uses_mesh == nullptr) continue;
          shape.node_mesh = true;
          for (const Variant& variant : {Variant{1, 0}, {2, 0}, {3, 7}}) {
            shape.channels = info.multi_channel ? variant.channels : 1;
            shape.chunk_bytes = info.pipelined ? variant.chunk_bytes : 0;
            visit(shape);
          }
        }
}

}  // namespace

TEST_CASE("every collective brings every contribution to where it belongs, once, whatever its transfers take") {
  std::size_t shapes = 0;
  every_shape({2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 31, 32, 33}, 11, [&](const Shape& shape) {
    INFO(shape.text() << " per node " << shape.per_node);
    Trace trace;
    const Dag dag = build(shape, &trace);
    REQUIRE(trace.effects.size() == dag.transfers.size());
    const Carried expected = play_contributions(shape, dag, trace, 0);
    // What a transfer carries is settled by what it waits for, not by who happens to be faster.
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      REQUIRE(play_contributions(shape, dag, trace, shapes + seed * 100'000) == expected);
    ++shapes;
  });
  CHECK(shapes > 1'000);
}

TEST_CASE("node leaders send the blocks of several nodes along a chain together where nodes are many") {
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter})
    for (const std::uint32_t nodes : {33, 42}) {
      const Shape shape{kind, Algorithm::node_leaders, nodes * 3, 11 * nodes, 3};
      INFO(shape.text());
      Trace trace;
      const Dag dag = build(shape, &trace);
      const Carried expected = play_contributions(shape, dag, trace, 0);
      REQUIRE(play_contributions(shape, dag, trace, 1) == expected);
      // Along the ring of leaders each node's blocks alone; along 2 connections of each node's chain at most 33 runs.
      const std::size_t passes = kind == Kind::all_reduce ? 2 : 1;
      REQUIRE(dag.transfers.size() <= passes * nodes * (nodes - 1 + 2 * 33) + 2 * nodes);
    }
}

TEST_CASE("transfers are as large as what they carry, and never larger than a chunk") {
  every_shape({2, 5, 8, 12, 16}, 101, [&](const Shape& shape) {
    INFO(shape.text() << " per node " << shape.per_node);
    Trace trace;
    const Dag dag = build(shape, &trace);
    std::vector<std::int64_t> carried(dag.transfers.size(), 0);
    for (const Trace::Range& range : trace.ranges) carried[range.transfer] += range.end - range.begin;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      REQUIRE(carried[i] == dag.transfers[i].bytes);
      // What is cut inside a node for a collective of two levels is the blocks of all nodes, a byte of each at least.
      const bool levels = shape.algorithm == Algorithm::two_level || shape.algorithm == Algorithm::in_switch;
      const std::int64_t least = levels ? shape.members / shape.per_node : 1;
      REQUIRE((shape.chunk_bytes == 0 || carried[i] <= std::max(shape.chunk_bytes, least)));
    }
  });
}

TEST_CASE("a reduction whose data does not wait for the round before it is found out") {
  const Shape shape{Kind::all_reduce, Algorithm::ring, 6, 600, 1};
  Trace trace;
  Dag dag = build(shape, &trace);
  const Carried expected = play_contributions(shape, dag, trace, 0);
  // Cut the edge by which the first transfer of member 0 is waited for by what member 1 passes on.
  std::uint32_t first = dag.successors_begin[0];
  while (dag.pairs[dag.transfers[dag.successors[first]].pair].first != 1) ++first;
  const std::uint32_t passed_on = dag.successors[first];
  dag.wait_count[passed_on] = static_cast<std::uint16_t>(dag.wait_count[passed_on] - 1);
  dag.successors.erase(dag.successors.begin() + first);
  for (std::size_t node = 1; node < dag.successors_begin.size(); ++node) --dag.successors_begin[node];
  trace.effects.assign(trace.effects.size(), Effect::copy);  // so that playing it does not end the test
  bool differs = false;
  for (std::uint64_t seed = 1; seed <= 20 && !differs; ++seed) {
    Buffers buffers(shape, dag, trace);
    std::mt19937_64 random(seed);
    std::vector<Contributions> sent(dag.transfers.size());
    play(
        dag, [&](std::uint32_t) { return 1 + random() % 1'000; },
        [&](std::uint32_t transfer) {
          sent[transfer] = buffers.held(dag.pairs[dag.transfers[transfer].pair].first,
                                        buffers.segments_of(trace.ranges[transfer]).first);
        },
        [&](std::uint32_t transfer) {
          buffers.held(dag.pairs[dag.transfers[transfer].pair].second,
                       buffers.segments_of(trace.ranges[transfer]).first) |= sent[transfer];
        });
    for (std::size_t i = 0; i < sent.size(); ++i) differs |= sent[i] != expected[i].front();
  }
  CHECK(differs);
}
