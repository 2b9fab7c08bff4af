// Communication between data-parallel replicas in a step: gradients are reduced, parameters gathered. ZeRO stages 0 to
// 3 (Rajbhandari et al. 2020, section 5). If ZeRO shards within groups of replicas, each group scatters and gathers by
// itself, and the ranks with the same shard in all groups all-reduce it once, when it includes the last micro-batch's
// gradients (hybrid sharding: Zhao et al. 2023, section 3.2.2; FSDP2's set_requires_all_reduce). One class moves
// buckets of parameters, stages 0 to 2, the other whole units, stage 3.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/workload/build/program_builder.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

/// A pass, and whether it is the first forward or the last backward pass of its chunk in the step.
struct StepPass {
  PipelinePass pass;
  bool first = false, last = false;
};

class ReplicaTraffic {
 public:
  virtual ~ReplicaTraffic() = default;

  /// Whether a pass has to be divided at the ends of its parts.
  virtual bool splits(const StepPass& step_pass) const = 0;
  virtual void begin_step() {}
  /// Called around each part of a pass; `part_index` counts in the pass's order. A pass that is not split has these
  /// calls for all its parts before and after it.
  virtual void before_part(const StepPass& step_pass, std::size_t part_index) = 0;
  virtual void after_part(const StepPass& step_pass, std::size_t part_index) = 0;
  /// Called after the last pass: reduces the remaining gradients. Returns the operations that the optimizer has to wait
  /// for.
  virtual ProgramBuilder::Waits finish_gradients() = 0;
  /// Called after the optimizer, which wrote a shard of the parameters.
  virtual void finish_step() {}
};

/// `work` and `builder` must outlive the object.
std::unique_ptr<ReplicaTraffic> make_replica_traffic(const Model& model, const Strategy& strategy,
                                                     const StageWork& work, ProgramBuilder& builder);

/// One kind of parameters, and the communicators of the ranks that hold the same.
struct ParameterFamily {
  Stream stream = Stream::data;
  Role role = Role::data;
  Stream inter_group_stream = Stream::data_inter_group;
  Role inter_group_role = Role::data_inter_group;
  std::int64_t Parameters::*count = &Parameters::dense;
  std::int64_t shards = 1;  // ranks of a sharding group; without ZeRO all replicas
  std::int64_t groups = 1;

  /// Returns how many of `parameters` a rank reduces with the other groups.
  std::int64_t share(std::int64_t parameters) const { return shards > 1 ? padded(parameters) / shards : parameters; }
  /// Returns `parameters` with the padding that a sharding group communicates: all shards are equal multiples of
  /// kShardAlignment (FSDP pads flat parameters, Megatron-Core's distributed optimizer its buckets).
  std::int64_t padded(std::int64_t parameters) const;
};
inline constexpr std::int64_t kShardAlignment = 128;  // parameters
/// Returns the families that have replicas: dense parameters, then experts.
std::vector<ParameterFamily> replicated_families(const Model& model, const Strategy& strategy);

std::unique_ptr<ReplicaTraffic> make_bucketed_traffic(const Model& model, const Strategy& strategy,
                                                      const StageWork& work, ProgramBuilder& builder);
std::unique_ptr<ReplicaTraffic> make_sharded_traffic(const Model& model, const Strategy& strategy,
                                                     const StageWork& work, ProgramBuilder& builder);

}  // namespace manyworlds::core::workload
