// What replicas tell each other in a step: gradients added up, parameters gathered. ZeRO stages 0 to 3 (Rajbhandari et
// al. 2020, section 5). One class holds buckets of parameters, stages 0 to 2, the other whole units, stage 3.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/workload/issuer.hpp"
#include "core/workload/schedule.hpp"
#include "core/workload/stage_work.hpp"

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

/// Parameters of one kind, by the communicator of the ranks that hold the same.
struct ParameterFamily {
  Stream stream = Stream::data;
  Role role = Role::data;
  std::int64_t Parameters::*count = &Parameters::dense;
  std::int64_t replicas = 1;

  /// What goes over the network for `parameters` that replicas share out: padding makes all shares equal, in units of
  /// kShareUnit (FSDP pads flat parameters, Megatron-Core's distributed optimizer its buckets).
  std::int64_t padded(std::int64_t parameters) const;
};
inline constexpr std::int64_t kShareUnit = 128;  // parameters
/// Those that have replicas: dense ones, then experts.
std::vector<ParameterFamily> replicated_families(const Model& model, const Strategy& strategy);

/// Bytes of a gradient as it is added up over replicas, and of a parameter as it is gathered.
std::int64_t gradient_bytes(const Strategy& strategy);
inline constexpr std::int64_t kParameterBytes = 2;

std::unique_ptr<ReplicaTraffic> make_bucketed_traffic(const Model& model, const Strategy& strategy,
                                                      const StageWork& work, Issuer& issuer);
std::unique_ptr<ReplicaTraffic> make_sharded_traffic(const Model& model, const Strategy& strategy,
                                                     const StageWork& work, Issuer& issuer);

}  // namespace manyworlds::core::workload
