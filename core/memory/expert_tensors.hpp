// What a mixture of experts keeps of a micro-batch for its backward pass: tokens are permuted, sent to the ranks of
// their experts, and come back (Megatron-LM's token dispatcher; Lepikhin et al. 2021, GShard, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model.hpp"
#include "core/workload/strategy.hpp"

namespace manyworlds::core::memory {

/// What takes the place of a dense layer's feed-forward part, on the ranks of one place among those that share its
/// experts.
struct ExpertTensors {
  std::vector<std::int64_t> kept;  // bytes of each tensor; copies of hot experts' weights among them
  std::int64_t made_again = 0;     // of those that are computed again instead
  std::int64_t computed_rows = 0;  // of this rank's experts
  std::int64_t copies_gradients = 0;
};
ExpertTensors expert_tensors(const workload::Model& model, const workload::Strategy& strategy, workload::LayerKind kind,
                             std::int64_t expert_rank);

}  // namespace manyworlds::core::memory
