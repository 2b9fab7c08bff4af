// Broadcast along a chain: the members forward the data in the order of a ring that begins at the root; with chunks, a
// member forwards one chunk while it receives the next (van de Geijn's pipelined broadcast; NCCL's ring broadcast). A
// reduce uses the chain in the opposite direction: each member adds its own vector to what it forwards.
#include <algorithm>

#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/mesh_orders.hpp"
#include "core/collective/transfers/ring_rounds.hpp"

namespace manyworlds::core::collective {
namespace {

void add(DagBuilder& dag, const Shape& shape) {
  dag.set_block_partition(1);
  const std::uint32_t count = slice_count(shape, shape.bytes);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    dag.set_channel(channel);
    std::vector<std::uint32_t> order = ring_order(shape, channel);
    std::rotate(order.begin(), std::find(order.begin(), order.end(), shape.root()), order.end());
    if (shape.kind == Kind::reduce) std::reverse(order.begin(), order.end());
    for (std::uint32_t slice = 0; slice < count; ++slice) {
      std::uint32_t previous = kNoNode;
      for (std::uint32_t i = 0; i + 1 < shape.members; ++i)
        previous = dag.add(order[i], order[i + 1], {0, 1, 1, channel * count + slice, shape.channels * count},
                           shape.kind == Kind::reduce ? Effect::reduce : Effect::copy, {previous});
    }
  }
}

CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  const std::int64_t on_link = s.nodes > 1 ? s.bytes : s.bytes * channels_per_link(shape) / s.channels;
  const std::int64_t bytes = pipelined_bytes(on_link, s.members - 1, shape.chunk_bytes);
  return {s.members - s.nodes, s.nodes - 1, s.nodes > 1 ? 0 : bytes, s.nodes > 1 ? bytes : 0};
}

void use_every_nic(Shape& shape) {
  const bool across = shape.per_node < shape.members;
  if (shape.node_mesh)
    shape.channels = std::max(shape.channels, across ? mesh_paths(shape.per_node) : mesh_rings(shape.per_node));
  else if (across)
    shape.channels = std::max(shape.channels, shape.per_node);
}

}  // namespace

AlgorithmInfo chain_algorithm() {
  return {.help = "from member to member along the ring's order",
          .kinds = {Kind::broadcast, Kind::reduce},
          .add = add,
          .cost = cost,
          .pipelined = true,
          .multi_channel = true,
          .considered_if_calibrated = everywhere,
          .uses_mesh = spreads_over_mesh,
          .use_every_nic = use_every_nic};
}

}  // namespace manyworlds::core::collective
