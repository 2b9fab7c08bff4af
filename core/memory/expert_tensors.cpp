// Tensors of router, dispatch, experts and the shared expert.
#include "core/memory/expert_tensors.hpp"

#include <numeric>

#include "core/workload/cut.hpp"
#include "core/workload/expert_load.hpp"
#include "core/workload/parameters.hpp"
#include "core/workload/replica_traffic.hpp"

namespace manyworlds::core::memory {

ExpertTensors expert_tensors(const workload::Model& model, const workload::Strategy& strategy, workload::LayerKind kind,
                             std::int64_t expert_rank) {
  constexpr std::int64_t k16Bit = 2, kFp32 = 4;
  const workload::Cut rank = workload::cut(model, strategy, {.experts = true});
  const workload::ExpertLoad load = workload::expert_load(model, strategy, kind);
  const workload::RankLoad mine = workload::rank_load(model, strategy, load, expert_rank);
  const std::int64_t up = model.activation == workload::Activation::swiglu ? 2 : 1;
  ExpertTensors made;
  made.computed_rows = mine.computed;
  made.kept = {
      k16Bit * rank.region_tokens * rank.hidden,       // input of the router
      2 * kFp32 * rank.region_tokens * model.experts,  // its logits and probabilities
      k16Bit * mine.computed * rank.hidden,            // tokens as experts have them
  };
  // Into the activation function and out of it; where SwiGLU is not fused, the gate's on the way too.
  const bool gate_apart = up == 2 && !strategy.stack.bias_activation_fusion;
  std::vector<std::int64_t> inside{k16Bit * mine.computed * rank.expert_ffn * up,
                                   k16Bit * mine.computed * rank.expert_ffn};
  if (gate_apart) inside.push_back(inside.back());
  if (workload::makes_experts_again(strategy, mine))
    made.made_again = std::accumulate(inside.begin(), inside.end(), std::int64_t{0});
  else
    made.kept.insert(made.kept.end(), inside.begin(), inside.end());
  // What comes back, to be weighed by probabilities.
  made.kept.push_back(k16Bit * load.all_rows() * strategy.etp * rank.hidden);
  // Where experts are elsewhere too, tokens are permuted here before they leave.
  if (strategy.ep * strategy.etp > 1) made.kept.push_back(k16Bit * load.all_rows() * rank.hidden);
  if (strategy.capacity_factor > 0) made.kept.push_back(rank.region_tokens * model.experts);  // the mask
  if (rank.shared_ffn > 0) {
    made.kept.push_back(k16Bit * rank.tokens * rank.shared_ffn * up);
    made.kept.push_back(k16Bit * rank.tokens * rank.shared_ffn);
    if (gate_apart) made.kept.push_back(k16Bit * rank.tokens * rank.shared_ffn);
  }
  const std::int64_t parameters = workload::expert_parameters(model, strategy.etp);
  const auto copies = static_cast<std::int64_t>(load.copied.size());
  for (std::int64_t copy = 0; copy < copies; ++copy) made.kept.push_back(k16Bit * parameters);
  made.copies_gradients = copies * workload::gradient_bytes(strategy) * parameters;
  return made;
}

}  // namespace manyworlds::core::memory
