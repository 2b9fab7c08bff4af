// What replicas tell each other in a step: gradients added up, parameters gathered. ZeRO stages 0 to 3 (Rajbhandari et
// al. 2020, section 5). Where ZeRO shares out within groups of replicas, each group scatters and gathers by itself, and
// the ranks with the same share of every group add it up once, when the last micro-batch's gradients are in it (hybrid
// sharding: Zhao et al. 2023, section 3.2.2; FSDP2's set_requires_all_reduce). One class holds buckets of parameters,
// stages 0 to 2, the other whole units, stage 3.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/workload/build/issuer.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

/// A pass of the schedule, and whether it is the first forward or the last backward pass of its chunk in the step.
struct PassOfStep {
  Slot slot;
  bool first = false, last = false;
};

class ReplicaTraffic {
 public:
  virtual ~ReplicaTraffic() = default;

  /// Whether a pass has to stop after each of its parts.
  virtual bool splits(const PassOfStep& pass) const = 0;
  virtual void begin_step() {}
  /// Around part `place` of a pass, counted in the pass's order. A pass that is not split is told of all its parts
  /// before and after it.
  virtual void before_part(const PassOfStep& pass, std::size_t place) = 0;
  virtual void after_part(const PassOfStep& pass, std::size_t place) = 0;
  /// After the last pass: gradients that have not left yet. The operations that the optimizer has to wait for.
  virtual Issuer::Waits finish_gradients() = 0;
  /// After the optimizer, which wrote a share of the parameters.
  virtual void finish_step() {}
};

/// `work` and `issuer` outlive it.
std::unique_ptr<ReplicaTraffic> make_replica_traffic(const Model& model, const Strategy& strategy,
                                                     const StageWork& work, Issuer& issuer);

/// Parameters of one kind, by the communicators of the ranks that hold the same.
struct ParameterFamily {
  Stream stream = Stream::data;
  Role role = Role::data;
  Stream stream_across = Stream::data_across;
  Role role_across = Role::data_across;
  std::int64_t Parameters::*count = &Parameters::dense;
  std::int64_t shards = 1;  // ranks of a group; without ZeRO all replicas are one
  std::int64_t groups = 1;

  /// What a rank adds up with the other groups of `parameters`.
  std::int64_t share(std::int64_t parameters) const { return shards > 1 ? padded(parameters) / shards : parameters; }
  /// What goes over the network for `parameters` that a group shares out: padding makes all shares equal, in units of
  /// kShareUnit (FSDP pads flat parameters, Megatron-Core's distributed optimizer its buckets).
  std::int64_t padded(std::int64_t parameters) const;
};
inline constexpr std::int64_t kShareUnit = 128;  // parameters
/// Those that have replicas: dense ones, then experts.
std::vector<ParameterFamily> replicated_families(const Model& model, const Strategy& strategy);

std::unique_ptr<ReplicaTraffic> make_bucketed_traffic(const Model& model, const Strategy& strategy,
                                                      const StageWork& work, Issuer& issuer);
std::unique_ptr<ReplicaTraffic> make_sharded_traffic(const Model& model, const Strategy& strategy,
                                                     const StageWork& work, Issuer& issuer);

}  // namespace manyworlds::core::workload
