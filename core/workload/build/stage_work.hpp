// The work of the ranks of a class: their model chunks as parts (embedding, layers, head), and each part's forward and
// backward pass with the recomputation of the strategy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/workload/layer/kernel_costs.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/layer/rank_class.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/program/program.hpp"
#include "core/workload/strategy/parameters.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Items that count towards one category of the breakdown.
struct Phase {
  StepPart category = StepPart::forward;
  OpList ops;
};
using PhaseList = std::vector<Phase>;

PhaseList forward_pass(const std::vector<Operator>& operators);

/// Returns the operators in reverse. Recomputed operators, with their collectives, run just before the one that needs
/// them.
PhaseList backward_pass(const std::vector<Operator>& operators);

struct PartWork {
  PhaseList forward, backward;
  PhaseList input_gradient, weight_gradient;  // the backward pass in two
  Parameters parameters;
  Parameters trained;                            // of these: they have gradients
  std::vector<WeightFactors> factors = {};       // of its weights, in backward order
  std::int64_t saved_bytes = 0;                  // per micro-batch, for its backward pass
  std::int64_t offloaded_bytes = 0;              // the share of these in the host's memory meanwhile
  std::int64_t weight_gradient_input_bytes = 0;  // inputs of weight gradients: layer inputs, and gradients of outputs

  /// Returns the parameters whose gradients replicas sum.
  Parameters summed() const {
    Parameters result = trained;
    for (const WeightFactors& weight : factors) result.dense -= weight.parameters;
    return result;
  }
  /// Returns the bytes of the factors that replicas gather.
  std::int64_t gathered_factor_bytes() const {
    std::int64_t sum = 0;
    for (const WeightFactors& weight : factors) sum += weight.gathered_bytes;
    return sum;
  }
  /// Whether gradients pass through it (forward_only_layers()).
  bool has_backward() const {
    return std::any_of(backward.begin(), backward.end(), [](const Phase& phase) { return !phase.ops.empty(); });
  }
  const PhaseList& pass(PassKind kind) const {
    const PhaseList* const all[] = {&forward, &backward, &input_gradient, &weight_gradient};
    return *all[static_cast<std::size_t>(kind)];
  }
};

/// An embedding, a layer, a head, or the last stage's copy of the token table: an index into StageWork::parts.
using ModelPart = std::size_t;

struct StageWork {
  std::vector<PartWork> parts;                 // distinct parts
  std::vector<std::vector<ModelPart>> chunks;  // by chunk of this rank, in forward order
  std::vector<std::size_t> model_order;        // indices of chunks, in the order of the model
  CudaGraphs cuda_graphs = CudaGraphs::none;
  compute::LaunchTimes launch_times;
  bool has_embedding_and_head = false;  // embedding and head are on this rank
  /// Trained parameters whose gradients tensor-parallel ranks sum under sequence parallelism, since each rank has some
  /// of the tokens.
  std::int64_t replicated_parameters = 0;

  const PartWork& of(ModelPart part) const { return parts[part]; }
  /// Whether the host launches the item, instead of a CUDA graph.
  bool launched_by_host(const WorkItem& work) const {
    return cuda_graphs == CudaGraphs::none || (cuda_graphs == CudaGraphs::all_but_experts && work.needs_token_counts);
  }
};

/// Calls `visit` with every kernel that computes a gradient from the factors of all replicas, on one rank in a step.
template <class Visitor>
void for_each_factor_kernel(const StageWork& work, Visitor&& visit) {
  for (const auto& chunk : work.chunks)
    for (const ModelPart part : chunk)
      for (const WeightFactors& weight : work.of(part).factors)
        for (const WorkItem& item : weight.gradient) visit(*item.kernel());
}
/// Returns those of a rank's trained `parameters` whose gradients replicas sum.
Parameters summed_parameters(const StageWork& work, Parameters parameters);

/// Returns the work of a class, with the cost of every kernel; `costs`, if given, collects the sources of these costs.
StageWork stage_work(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass rank_class,
                     KernelCosts* costs = nullptr);
/// The same without a GPU: kernels have their shapes, FLOPs and bytes, and no cost.
StageWork stage_work_without_costs(const Model& model, const Strategy& strategy, RankClass rank_class);

/// Returns the kernels at the end of a rank's step: gradient norm and mixed-precision Adam over its share of
/// trained `parameters` (from ZeRO 1 on one shard), and zeroing of the gradients (from ZeRO 2 on of that shard). None
/// where nothing is trained.
std::vector<compute::Kernel> optimizer_kernels(const Strategy& strategy, const Parameters& parameters);

}  // namespace manyworlds::core::workload
