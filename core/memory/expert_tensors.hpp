// What a mixture of experts keeps of a micro-batch for its backward pass: tokens are permuted, sent to the ranks of
// their experts, and come back (Megatron-LM's token dispatcher; Lepikhin et al. 2021, GShard, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model.hpp"
#include "core/workload/strategy.hpp"

namespace manyworlds::core::memory {

/// Bytes of each tensor that takes the place of a dense layer's feed-forward part; every expert is sent as many tokens.
std::vector<std::int64_t> expert_tensors(const workload::Model& model, const workload::Strategy& strategy);

}  // namespace manyworlds::core::memory
