// The DAGs of collectives that the steps of one process share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "core/collective/dag/dag.hpp"
#include "core/collective/dag/rotation.hpp"

namespace manyworlds::core::step {

/// A cache of collective DAGs by shape, shared by the steps of one process. Not thread-safe.
class DagCache {
 public:
  std::shared_ptr<const collective::Dag> get(const collective::Shape& shape);
  /// Returns a DAG with the transfers, connections and order of get(shape), whose transfers may carry other bytes.
  /// Shapes that differ only in their bytes share it if bytes decide nothing else, as in rings that are not cut into
  /// chunks.
  std::shared_ptr<const collective::Dag> canonical(const collective::Shape& shape);
  /// Returns the quotient of a DAG, which must come from this cache, by a rotation.
  const collective::QuotientDag& quotient_dag(const std::shared_ptr<const collective::Dag>& dag,
                                              std::uint32_t rotation);

 private:
  std::map<collective::Shape, std::shared_ptr<const collective::Dag>> dags_;
  std::map<std::pair<const collective::Dag*, std::uint32_t>, collective::QuotientDag> quotient_dags_;
};

/// Whether all shapes that differ from this one only in bytes share one canonical DAG. It is so for an unchunked ring
/// with an even split, whose transfers have few sizes.
bool dag_is_byte_independent(const collective::Shape& shape);
/// Returns the wire bytes of each transfer of such a shape inside a node, or between nodes, which its canonical DAG
/// leaves open, or -1 if their data differ in size.
std::int64_t wire_bytes_per_transfer(const collective::Shape& shape, bool inter_node);

}  // namespace manyworlds::core::step
