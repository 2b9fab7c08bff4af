// Tensors of router, dispatch, experts and the shared expert.
#include "core/memory/expert_tensors.hpp"

#include "core/workload/cut.hpp"

namespace manyworlds::core::memory {

std::vector<std::int64_t> expert_tensors(const workload::Model& model, const workload::Strategy& strategy) {
  constexpr std::int64_t k16Bit = 2, kFp32 = 4;
  const workload::Cut rank = workload::cut(model, strategy, {.experts = true});
  const std::int64_t up = model.activation == workload::Activation::swiglu ? 2 : 1;
  std::vector<std::int64_t> tensors{
      k16Bit * rank.region_tokens * rank.hidden,       // input of the router
      2 * kFp32 * rank.region_tokens * model.experts,  // its logits and probabilities
      k16Bit * rank.routed_tokens * rank.hidden,       // tokens as experts have them
      k16Bit * rank.routed_tokens * rank.expert_ffn * up, k16Bit * rank.routed_tokens * rank.expert_ffn,
      k16Bit * rank.routed_tokens * rank.hidden,  // what comes back, to be weighed by probabilities
  };
  // Where experts are elsewhere too, tokens are permuted here before they leave.
  if (strategy.ep * strategy.etp > 1)
    tensors.push_back(k16Bit * rank.region_tokens * model.experts_per_token * rank.hidden);
  if (rank.shared_ffn > 0) {
    tensors.push_back(k16Bit * rank.tokens * rank.shared_ffn * up);
    tensors.push_back(k16Bit * rank.tokens * rank.shared_ffn);
  }
  return tensors;
}

}  // namespace manyworlds::core::memory
