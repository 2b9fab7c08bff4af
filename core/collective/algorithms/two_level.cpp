// Two-level collectives: rings over the scale-up fabric inside each node, and one ring per local index (rail) between
// nodes. All-reduce: reduce-scatter inside, all-reduce of the shard between, all-gather inside (as in Horovod's and
// NCCL's hierarchical all-reduce; Jia et al. 2018, arXiv 1807.11205, section 3.2). On a full mesh, where a ring would
// take one of a member's links, members of a node send to each other at once.
#include <algorithm>

#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/ring_rounds.hpp"
#include "core/collective/transfers/two_level_generator.hpp"

namespace manyworlds::core::collective {
namespace {

class TwoLevel {
 public:
  TwoLevel(DagBuilder& dag, const Shape& shape, std::uint32_t channel, std::uint32_t count)
      : dag_(dag),
        shape_(shape),
        first_share_(channel * count),
        shares_(shape.channels * count),
        frontiers_(count, Frontier(shape.members)) {}

  void intra_node(RingPhases phases) {
    const std::vector<Ring> rings = node_rings(shape_);
    if (shape_.node_mesh)
      for (const Ring& ring : rings) add_direct_rounds(dag_, ring, phases, first_share_, shares_, frontiers_);
    else
      add_by_sender(rings, phases, [](std::uint32_t node, std::uint32_t rail) { return RingPlace{node, rail}; });
  }

  void inter_node(RingPhases phases) {
    add_by_sender(rail_rings(shape_), phases, [](std::uint32_t node, std::uint32_t rail) {
      return RingPlace{rail, node};
    });
  }

 private:
  /// Adds rounds in the order of their senders, as a generator numbers them. `place` is that of a member of a node.
  template <class Place>
  void add_by_sender(const std::vector<Ring>& rings, RingPhases phases, Place place) {
    std::vector<RingPlace> places;
    for (std::uint32_t member = 0; member < shape_.members; ++member)
      places.push_back(place(member / shape_.per_node, member % shape_.per_node));
    add_ring_rounds(dag_, rings, places, phases, first_share_, shares_, frontiers_);
  }

  DagBuilder& dag_;
  const Shape& shape_;
  std::uint32_t first_share_, shares_;
  std::vector<Frontier> frontiers_;
};

void add(DagBuilder& dag, const Shape& shape) {
  dag.set_block_partition(shape.members);
  const bool reduce = shape.kind != Kind::all_gather, gather = shape.kind != Kind::reduce_scatter;
  const std::uint32_t count = two_level_slices(shape);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    dag.set_channel(channel);
    TwoLevel builder(dag, shape, channel, count);
    if (reduce) builder.intra_node({true, false});
    builder.inter_node({reduce, gather});
    if (gather) builder.intra_node({false, true});
  }
}

CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  const std::int64_t shard = s.bytes / s.per_node;
  if (shape.node_mesh)
    return {s.passes, s.passes * (s.nodes - 1), s.passes * shard, s.passes * (shard - shard / s.nodes)};
  return {s.passes * (s.per_node - 1), s.passes * (s.nodes - 1), s.passes * (s.bytes - shard),
          s.passes * (shard - shard / s.nodes)};
}

Algorithm simplified(const Shape& shape) {
  return has_one_level(shape) ? Algorithm::ring : Algorithm::two_level;
}

}  // namespace

AlgorithmInfo two_level_algorithm() {
  return {.help = "rings inside each node, or to all at once on a full mesh, and between nodes one ring per rail",
          .kinds = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter},
          .add = add,
          .cost = cost,
          .generator = two_level_generator,
          .pipelined = true,
          .multi_channel = true,
          .considered = on_two_levels,
          .simplified = simplified,
          .uses_mesh = always};
}

}  // namespace manyworlds::core::collective
