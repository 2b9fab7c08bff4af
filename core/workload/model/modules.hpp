// Modules of a layer under the names that Megatron-Core gives them (recompute_modules, offload_modules). A strategy
// recomputes, or offloads to the host's memory, a set of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace manyworlds::core::workload {

/// A set of modules, one bit for each.
using Modules = std::uint32_t;

/// Modules that can be recomputed in the backward pass. For `layernorm`, `mla_up_proj`, `mlp_act` and `moe_act` the
/// output is dropped (output-discarding checkpoints); the others save only their input, and core_attn drops only scores
/// and masks (Korthikanti et al. 2022, section 5).
namespace recompute {
inline constexpr Modules core_attn = 1, layernorm = 2, mla_up_proj = 4, mlp_act = 8, mlp = 16, moe_act = 32,
                         shared_experts = 64, moe = 128;
// Not selectable by name: the norm before the feed-forward part, which follows layernorm, and experts with more tokens
// than the strategy saves activations for.
inline constexpr Modules mlp_norm = 256, overloaded_experts = 512;
}  // namespace recompute
const std::vector<std::string>& recompute_module_names();  // in the order of the bits

/// Modules whose inputs can be in the host's memory between forward and backward pass; core_attn includes its internal
/// tensors.
namespace offload {
inline constexpr Modules attn_norm = 1, qkv_linear = 2, core_attn = 4, attn_proj = 8, mlp_norm = 16, mlp_fc1 = 32,
                         mlp_act = 64, mlp_fc2 = 128, expert_fc1 = 256, moe_act = 512, expert_fc2 = 1'024;
}  // namespace offload
const std::vector<std::string>& offload_module_names();

/// Weights of a layer without experts whose gradients replicas can exchange as sufficient factors; qkv_linear is every
/// linear layer before the attention core.
namespace factor_weight {
inline constexpr Modules qkv_linear = 1, attn_proj = 2, mlp_fc1 = 4, mlp_fc2 = 8;
}  // namespace factor_weight
const std::vector<std::string>& factor_weight_names();

/// Parts of a layer that tensor-parallel ranks can share out by samples instead of by weights: each of them has all
/// weights of the part and computes it for its share of a micro-batch, as ranks of data parallelism do.
namespace data_part {
inline constexpr Modules attention = 1, feed_forward = 2, mixer = 4;
}  // namespace data_part
const std::vector<std::string>& data_part_names();

/// Weights of a layer that have a pair of low rank beside them: the names are those of Megatron-Core's linear layers.
namespace lora_weight {
inline constexpr Modules linear_qkv = 1, linear_proj = 2, linear_fc1 = 4, linear_fc2 = 8;
}  // namespace lora_weight
const std::vector<std::string>& lora_weight_names();

}  // namespace manyworlds::core::workload
