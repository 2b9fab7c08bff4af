#include "core/step/layout/dag_cache.hpp"

namespace manyworlds::core::step {

std::shared_ptr<const collective::Dag> DagCache::get(const collective::Shape& shape) {
  auto& slot = dags_[shape];
  if (!slot) slot = std::make_shared<collective::Dag>(collective::build(shape));
  return slot;
}

bool dag_is_byte_independent(const collective::Shape& shape) {
  return shape.algorithm == collective::Algorithm::ring && shape.chunk_bytes == 0 && shape.queue_pairs == 1 &&
         shape.split.even();
}

std::int64_t wire_bytes_per_transfer(const collective::Shape& shape, bool inter_node) {
  const std::int64_t parts = std::int64_t{shape.members} * shape.channels;
  if (shape.bytes % parts != 0) return -1;
  return collective::costs_of(shape).wire_bytes(shape.bytes / parts, inter_node);
}

std::shared_ptr<const collective::Dag> DagCache::canonical(const collective::Shape& shape) {
  if (!dag_is_byte_independent(shape)) return get(shape);
  collective::Shape unit_shape = shape;
  unit_shape.bytes = std::int64_t{shape.members} * shape.channels;
  return get(unit_shape);
}

const collective::QuotientDag& DagCache::quotient_dag(const std::shared_ptr<const collective::Dag>& dag,
                                                      std::uint32_t rotation) {
  const auto known = quotient_dags_.find({dag.get(), rotation});
  if (known != quotient_dags_.end()) return known->second;
  return quotient_dags_.try_emplace({dag.get(), rotation}, collective::quotient_dag(*dag, rotation)).first->second;
}

}  // namespace manyworlds::core::step
