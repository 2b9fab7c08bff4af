// Reduction in switches: members send their data up to a switch, which adds it up and sends the sum down, to one member
// or replicated to all. Inside nodes this is NVLink SHARP (NVLS, NCCL 2.17), shard by shard; between nodes it is SHARP
// (Graham et al., COMHPC 2016) if the members of a rail share one switch, otherwise a ring. With chunks, finished sums
// are sent on while later ones are still being reduced.
#include <algorithm>

#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/ring_rounds.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr std::int64_t kMinChunkBytes = 16 << 10;  // of a calibrated library
constexpr std::int64_t kChunksPerShard = 8;

class InSwitch {
 public:
  InSwitch(DagBuilder& dag, const Shape& shape)
      : dag_(dag),
        shape_(shape),
        node_rings_(node_rings(shape)),
        rail_rings_(rail_rings(shape)),
        frontiers_(1, Frontier(shape.members)) {
    if (shape.per_node > 1)
      for (const Ring& node : node_rings_) node_switches_.push_back(dag.add_switch(node.members[0], node.members[1]));
    if (shape.rail_switches)
      for (const Ring& rail : rail_rings_) rail_switches_.push_back(dag.add_switch(rail.members[0], rail.members[1]));
  }

  /// Begins the next slice: the following transfers carry part `share` of `shares` of every block.
  void begin_slice(std::uint32_t share, std::uint32_t shares) {
    share_ = share, shares_ = shares;
    frontiers_.assign(1, Frontier(shape_.members));
  }

  void intra_node(RingPhases phases) {
    for (std::size_t node = 0; node < node_switches_.size(); ++node)
      exchange(node_switches_[node], node_rings_[node], phases);
  }

  void inter_node(RingPhases phases) {
    for (std::size_t rail = 0; rail < rail_rings_.size(); ++rail) {
      if (shape_.rail_switches)
        exchange(rail_switches_[rail], rail_rings_[rail], phases);
      else
        add_ring_rounds(dag_, rail_rings_[rail], phases, share_, shares_, frontiers_);
    }
  }

 private:
  /// Adds the transfers of one switch. For the block of each member of `ring`: all members send it up to be reduced, or
  /// its owner alone sends it; then the switch sends it down to its owner, to all other members, or to both.
  void exchange(std::uint32_t switch_id, const Ring& ring, RingPhases phases) {
    Frontier& frontier = frontiers_[0];
    std::vector<std::vector<std::uint32_t>> received(ring.members.size());
    for (std::size_t owner = 0; owner < ring.members.size(); ++owner) {
      BlockSet block = ring.blocks[owner];
      block.share = share_, block.shares = shares_;
      std::vector<std::uint32_t> uploads;
      for (std::size_t i = 0; i < ring.members.size(); ++i)
        if (phases.reduce || i == owner)
          uploads.push_back(dag_.add(ring.members[i], switch_id, block, phases.reduce ? Effect::reduce : Effect::copy,
                                     frontier[ring.members[i]]));
      if (uploads.size() > 1) uploads = {dag_.add_join(switch_id, uploads)};
      for (std::size_t i = 0; i < ring.members.size(); ++i)
        if (i == owner ? phases.reduce : phases.gather)
          received[i].push_back(dag_.add(switch_id, ring.members[i], block, Effect::copy, uploads));
    }
    for (std::size_t i = 0; i < ring.members.size(); ++i)
      frontier[ring.members[i]] = {received[i].size() == 1 ? received[i][0]
                                                           : dag_.add_join(ring.members[i], received[i])};
  }

  DagBuilder& dag_;
  const Shape& shape_;
  std::uint32_t share_ = 0, shares_ = 1;
  std::vector<Ring> node_rings_, rail_rings_;
  std::vector<std::uint32_t> node_switches_, rail_switches_;
  std::vector<Frontier>
      frontiers_;  // one frontier: the nodes after which each member's data is ready for the next phase
};

void add(DagBuilder& dag, const Shape& shape) {
  dag.set_block_partition(shape.members);
  InSwitch builder(dag, shape);
  const bool reduce = shape.kind != Kind::all_gather, gather = shape.kind != Kind::reduce_scatter;
  Shape block = shape;  // inside a node, a transfer carries one block per node
  const std::uint32_t nodes = shape.members / shape.per_node;
  if (shape.chunk_bytes > 0) block.chunk_bytes = std::max<std::int64_t>(1, shape.chunk_bytes / nodes);
  block.channels = 1;
  const std::uint32_t count = slice_count(block, chunk_bytes(shape.bytes, shape.members, 0));
  for (std::uint32_t slice = 0; slice < count; ++slice) {
    builder.begin_slice(slice, count);
    dag.set_channel(0);
    if (reduce) builder.intra_node({true, false});
    if (shape.members > shape.per_node) builder.inter_node({reduce, gather});
    if (count > 1) dag.set_channel(1);  // otherwise gathers would wait for all reductions on their connection
    if (gather) builder.intra_node({false, true});
  }
}

/// The whole vector goes up to the switch of the node once, and its shards a second time; the same is sent down.
CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  const std::int64_t shard = s.bytes / s.per_node;
  CostTerms terms;
  if (s.per_node > 1) terms = {s.passes, 0, s.passes == 2 ? s.bytes + shard : s.bytes, 0};
  if (s.nodes == 1) return terms;
  terms.inter_node_steps = shape.rail_switches ? 1 : s.passes * (s.nodes - 1);
  terms.inter_node_bytes = shape.rail_switches ? shard : s.passes * (shard - shard / s.nodes);
  return terms;
}

/// On scale-up fabrics only; elsewhere it must be configured, as NCCL's CollNet.
bool considered(Kind, const Communicator& communicator) {
  return communicator.per_node > 1 && communicator.node_switches;
}

bool considered_if_calibrated(Kind kind, const Communicator& communicator) {
  return kind == Kind::all_reduce && inside_a_node(kind, communicator) && communicator.node_switches;
}

void calibrate(Shape& shape) {
  if (shape.chunk_bytes == 0)
    shape.chunk_bytes = std::max(kMinChunkBytes, shape.bytes / (shape.members * kChunksPerShard));
}

}  // namespace

AlgorithmInfo in_switch_algorithm() {
  return {.help = "switches reduce and replicate (NVLS in the node; SHARP where a rail is one switch, else rings)",
          .kinds = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter},
          .add = add,
          .cost = cost,
          .pipelined = true,
          .latency_group = LatencyGroup::in_switch,
          .considered = considered,
          .considered_if_calibrated = considered_if_calibrated,
          .calibrate = calibrate};
}

}  // namespace manyworlds::core::collective
