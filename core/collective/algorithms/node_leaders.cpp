// Collectives through node leaders: the first member of each node (the leader) sends and receives for the whole node,
// so that between nodes there is one ring of leaders, over one NIC per node; inside nodes, a chain moves blocks to or
// from the leader while the next ones arrive (Karonis et al. 2000, MPICH-G2's multi-level collectives). A single ring
// through all members, as a library with one channel builds it, loads the same NICs with the same bytes, but with many
// more transfers.
#include <algorithm>

#include "core/collective/algorithms/algorithm_info.hpp"

namespace manyworlds::core::collective {
namespace {

// Runs per chain, approximately (see run_from).
constexpr std::uint32_t kRunsPerChain = 32;

class NodeLeaders {
 public:
  NodeLeaders(DagBuilder& dag, const Shape& shape)
      : dag_(dag),
        per_node_(shape.per_node),
        nodes_(shape.members / shape.per_node),
        ready_(nodes_ * nodes_, kNoNode) {}

  /// Reduces along the chains and the ring of leaders; each leader ends with the sum of its node's blocks.
  void reduce() {
    for (std::uint32_t node = 0; node < nodes_; ++node)
      for (std::uint32_t round = 1; round <= nodes_;) {
        const NodeRun run = run_from((node + nodes_ - round) % nodes_, nodes_ + 1 - round);  // in ring order
        std::uint32_t previous = kNoNode;
        for (std::uint32_t local = per_node_ - 1; local > 0; --local)
          previous = dag_.add(member(node, local), member(node, local - 1), blocks_of(run), Effect::reduce, {previous});
        for (std::uint32_t i = 0; i < run.count; ++i) ready(node, run.lowest + i) = previous;
        round += run.count;
      }
    for (std::uint32_t round = 1; round < nodes_; ++round)
      for (std::uint32_t node = 0; node < nodes_; ++node)
        forward(node, (node + nodes_ - round) % nodes_, Effect::reduce);
  }

  /// Sends each member its block from its leader.
  void scatter() {
    for (std::uint32_t node = 0; node < nodes_; ++node)
      for (std::uint32_t local = 1; local < per_node_; ++local)
        dag_.add(leader(node), member(node, local), {member(node, local)}, Effect::copy, {ready(node, node)});
  }

  /// Collects the blocks of a node's members at their leader.
  void collect() {
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      std::vector<std::uint32_t> transfers;
      for (std::uint32_t local = 1; local < per_node_; ++local)
        transfers.push_back(dag_.add(member(node, local), leader(node), {member(node, local)}, Effect::copy));
      if (!transfers.empty()) ready(node, node) = dag_.add_join(leader(node), transfers);
    }
  }

  /// Gathers all blocks along the ring of leaders and distributes them along the chains.
  void gather() {
    for (std::uint32_t round = 0; round + 1 < nodes_; ++round)
      for (std::uint32_t node = 0; node < nodes_; ++node) forward(node, (node + nodes_ - round) % nodes_, Effect::copy);
    if (per_node_ == 1) return;
    for (std::uint32_t node = 0; node < nodes_; ++node)
      for (std::uint32_t round = 0; round < nodes_;) {
        const NodeRun run = run_from((node + nodes_ - round) % nodes_, nodes_ - round);  // in ring order
        // The lowest block of a run arrives last, except for the node's own block, which does not come from the ring.
        std::uint32_t previous = dag_.add(leader(node), member(node, 1), blocks_of(run), Effect::copy,
                                          {ready(node, run.lowest), ready(node, node)});
        for (std::uint32_t local = 1; local + 1 < per_node_; ++local)
          previous = dag_.add(member(node, local), member(node, local + 1), blocks_of(run), Effect::copy, {previous});
        round += run.count;
      }
  }

 private:
  std::uint32_t member(std::uint32_t node, std::uint32_t local) const { return node * per_node_ + local; }
  std::uint32_t leader(std::uint32_t node) const { return member(node, 0); }
  /// A run of consecutive nodes whose blocks move along a chain together. The ring delivers, or needs, the highest
  /// first.
  struct NodeRun {
    std::uint32_t lowest = 0, count = 1;
  };
  /// Returns the run that ends at `highest`, with at most `max_count` nodes. A chain has some dozens of runs: few
  /// transfers per member, but each short enough that a chain starts and finishes early.
  NodeRun run_from(std::uint32_t highest, std::uint32_t max_count) const {
    const std::uint32_t run_length = (nodes_ + kRunsPerChain - 1) / kRunsPerChain,
                        count = std::min(highest % run_length + 1, max_count);
    return {highest + 1 - count, count};
  }
  BlockSet blocks_of(const NodeRun& nodes) const { return {member(nodes.lowest, 0), nodes.count * per_node_}; }
  /// The node of the DAG after which the leader of `node` holds the blocks of node `block`; kNoNode: from the start.
  std::uint32_t& ready(std::uint32_t node, std::uint32_t block) { return ready_[node * nodes_ + block]; }

  /// One step of the ring: a leader sends the blocks of node `block` to the next leader.
  void forward(std::uint32_t node, std::uint32_t block, Effect effect) {
    const std::uint32_t next = (node + 1) % nodes_;
    const std::uint32_t transfer =
        dag_.add(leader(node), leader(next), blocks_of({block}), effect, {ready(node, block)});
    const std::uint32_t predecessors[] = {transfer, ready(next, block)};
    ready(next, block) = effect == Effect::copy ? transfer : dag_.add_join(leader(next), predecessors);
  }

  DagBuilder& dag_;
  std::uint32_t per_node_, nodes_;
  std::vector<std::uint32_t> ready_;
};

void add(DagBuilder& dag, const Shape& shape) {
  dag.set_block_partition(shape.members);
  NodeLeaders builder(dag, shape);
  if (shape.kind == Kind::all_gather)
    builder.collect();
  else
    builder.reduce();
  if (shape.kind == Kind::reduce_scatter)
    builder.scatter();
  else
    builder.gather();
}

/// The chains inside nodes forward blocks while the ring between nodes delivers the next ones.
CostTerms cost(const Shape&, const CollectiveSizes& s) {
  const std::int64_t node_bytes = s.bytes / s.nodes;
  CostTerms terms{0, s.passes * (s.nodes - 1), 0, s.passes * (s.bytes - node_bytes)};
  if (s.per_node > 1)
    terms.intra_node_steps = s.passes * s.per_node, terms.intra_node_bytes = s.passes * s.per_node * node_bytes;
  return terms;
}

Algorithm simplified(const Shape& shape) {
  return has_one_level(shape) ? Algorithm::ring : Algorithm::node_leaders;
}

}  // namespace

AlgorithmInfo node_leaders_algorithm() {
  return {.help = "one member of each node speaks for it: between nodes one ring over one NIC each, inside chains",
          .kinds = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter},
          .add = add,
          .cost = cost,
          .considered = on_two_levels,
          .simplified = simplified};
}

}  // namespace manyworlds::core::collective
