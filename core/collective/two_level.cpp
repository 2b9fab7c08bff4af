// The two-level form: over NVLink inside each node, and between nodes one ring per local index (its rail).
// All-reduce: reduce-scatter inside, all-reduce of the shard between, all-gather inside (as Horovod's and NCCL's
// hierarchical all-reduce; Jia et al. 2018, arXiv 1807.11205, section 3.2).
#include "core/collective/dag.hpp"

namespace manyworlds::core::collective {
namespace {

void inside(DagBuilder& dag, const Shape& shape, std::int64_t bytes, Frontier& frontier) {
  for (std::uint32_t first = 0; first < shape.members; first += shape.per_node) {
    std::vector<std::uint32_t> ring;
    for (std::uint32_t i = 0; i < shape.per_node; ++i) ring.push_back(first + i);
    add_ring(dag, ring, bytes, shape.per_node - 1, frontier);
  }
}

void between(DagBuilder& dag, const Shape& shape, std::uint32_t passes, Frontier& frontier) {
  const std::uint32_t nodes = shape.members / shape.per_node;
  for (std::uint32_t rail = 0; rail < shape.per_node; ++rail) {
    std::vector<std::uint32_t> ring;
    for (std::uint32_t node = 0; node < nodes; ++node) ring.push_back(node * shape.per_node + rail);
    add_ring(dag, ring, chunk_bytes(shape.bytes, shape.per_node, rail), passes * (nodes - 1), frontier);
  }
}

}  // namespace

void add_two_level(DagBuilder& dag, const Shape& shape, Frontier& frontier) {
  if (shape.kind != Kind::all_gather) inside(dag, shape, shape.bytes, frontier);
  between(dag, shape, shape.kind == Kind::all_reduce ? 2 : 1, frontier);
  if (shape.kind != Kind::reduce_scatter) inside(dag, shape, shape.bytes, frontier);
}

}  // namespace manyworlds::core::collective
