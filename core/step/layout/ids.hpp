// The ids of a compiled step.
#pragma once

#include "core/base/id.hpp"
#include "core/workload/program/ids.hpp"

namespace manyworlds::core::step {

/// A rank of the job, in the order of tensor, context, data and pipeline parallelism.
using RankId = Id<struct RankTag>;
/// A GPU of the cluster, numbered node by node: a vertex of the graph below Graph::gpus.
using GpuId = Id<struct GpuTag>;
using workload::RepresentativeId;  // equivalent ranks: rank_symmetry.hpp
/// A communicator, in the order of RankLayout::groups().
using GroupId = Id<struct GroupTag>;
/// A collective operation of a group, in the order of CompiledStep::collective_ops().
using CollectiveOpId = Id<struct CollectiveOpTag>;
/// One run of a collective operation. Instances are numbered by group, then by the order in which the group runs them.
using InstanceId = Id<struct InstanceTag>;

/// A member of a collective instance.
struct Member {
  InstanceId instance;
  std::uint32_t member = 0;  // its position in the group
  auto operator<=>(const Member&) const = default;
};

}  // namespace manyworlds::core::step
