#include "core/step/estimate/strided_collectives.hpp"

#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {

StridedCollective strided_collective(const Configuration& configuration, const Links& links, std::int64_t members,
                                     std::int64_t stride, workload::Role role, collective::Kind kind,
                                     std::int64_t bytes, const collective::Split& split) {
  StridedCollective result;
  collective::Communicator& group = result.communicator;
  group.members = static_cast<std::uint32_t>(members);
  const std::int64_t local = std::clamp<std::int64_t>(configuration.gpus_per_node / stride, 1, members);
  group.per_node = static_cast<std::uint32_t>(members % local == 0 ? local : 1);
  group.intra_node = links.intra_node;
  group.inter_node = links.inter_node;
  group.node_switches = group.rail_switches = true;
  group.node_mesh = links.node_mesh && group.per_node > 2;
  result.shape = shape_of(configuration, {0, role, group}, kind, bytes, split);
  result.shape.per_node = group.per_node;  // shape_of() leaves it out if the DAG does not depend on it
  return result;
}

}  // namespace manyworlds::core::step
