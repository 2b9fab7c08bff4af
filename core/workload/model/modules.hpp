// Parts of a layer by the names Megatron-Core gives them (recompute_modules, offload_modules): what a strategy makes
// again in the backward pass, or keeps in the host's memory, is a set of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace manyworlds::core::workload {

/// A set: one bit for each module.
using Modules = std::uint32_t;

/// What may run forward again in the backward pass. Of `layernorm`, `mla_up_proj`, `mlp_act` and `moe_act` what comes
/// out is not kept (output-discarding checkpoints); of the others nothing but what goes in, and of core_attn all but
/// scores and masks (Korthikanti et al. 2022, section 5).
namespace again {
inline constexpr Modules core_attn = 1, layernorm = 2, mla_up_proj = 4, mlp_act = 8, mlp = 16, moe_act = 32,
                         shared_experts = 64, moe = 128;
// Not to be asked for: the norm before the feed-forward part, which goes with layernorm, and experts that got more
// tokens than a strategy keeps activations of.
inline constexpr Modules mlp_norm = 256, many_tokens = 512;
}  // namespace again
const std::vector<std::string>& recompute_module_names();  // in the order of the bits

/// Whose inputs may go to the host's memory between forward and backward pass; of core_attn also what is inside.
namespace away {
inline constexpr Modules attn_norm = 1, qkv_linear = 2, core_attn = 4, attn_proj = 8, mlp_norm = 16, mlp_fc1 = 32,
                         mlp_act = 64, mlp_fc2 = 128, expert_fc1 = 256, moe_act = 512, expert_fc2 = 1'024;
}  // namespace away
const std::vector<std::string>& offload_module_names();

}  // namespace manyworlds::core::workload
