// Ring collectives: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
// 2009, section 3. Transfers on a connection are serialized; with chunks, two are in flight (DagBuilder::add).
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/algorithms/ring_rounds.hpp"

namespace manyworlds::core::collective {

void add_ring(DagBuilder& dag, const Shape& shape) {
  dag.set_block_partition(shape.members);
  const std::uint32_t count = slice_count(shape, chunk_bytes(shape.bytes, shape.members, 0));
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    dag.set_channel(channel);
    Ring ring{ring_order(shape, channel), {}};
    for (const std::uint32_t member : ring.members) ring.blocks.push_back({member});
    std::vector<Frontier> frontiers(count, Frontier(shape.members));
    add_ring_rounds(dag, ring, {shape.kind != Kind::all_gather, shape.kind != Kind::reduce_scatter}, channel * count,
                    shape.channels * count, frontiers);
  }
}

}  // namespace manyworlds::core::collective
