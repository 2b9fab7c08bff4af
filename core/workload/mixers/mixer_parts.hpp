// What mixers that go over the sequence with a state have in common: their place in a layer, a short convolution and a
// gated norm.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model/token_trade.hpp"
#include "core/workload/operators/operator_parts.hpp"
#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

/// A part in the place of attention, whose context-parallel ranks trade tokens for heads.
class Mixer : public LayerPart, public TradesTokens {
 public:
  BranchNames branch_names() const override {
    return {"mixer_norm", "mixer_residual", recompute::layernorm, offload::attn_norm};
  }
  Modules data_part() const override { return data_part::mixer; }
};

/// Adds the projection of a mixer's input to `columns` on this rank.
void add_mixer_input(std::vector<Operator>& operators, const PartOnRank& on, std::int64_t columns);
/// The same, and the trade of these columns' tokens for heads, all in one tensor, if there are context-parallel ranks.
void add_traded_input(std::vector<Operator>& operators, const PartOnRank& on, std::int64_t columns);
/// Returns the projection of a mixer's output, of `width` on this rank.
Operator mixer_output(const PartOnRank& on, std::int64_t width);

/// Adds the causal convolution over few tokens of `elements`, with its activation function: read and written once, by a
/// kernel of this class, at half of the memory bandwidth. Measured are mamba_ssm's on H100, at 45 to 47 % forward and
/// 37 % backward, and flash-linear-attention's on B200, at less (docs/facts/scans.md, section 3).
void convolve(OpList& ops, compute::KernelClass kernel_class, std::int64_t elements);
/// Its gradient: input and gradient are read, one tensor is written; weights are few.
void convolve_backward(OpList& ops, compute::KernelClass kernel_class, std::int64_t elements);

/// RMSNorm of y silu(z), with y the mixer's output, which is saved in the order of tokens, and z the gates: y and z are
/// read, one tensor is written; backward three are read and two written. `state_space`: by mamba_ssm's kernels, which
/// reach 32 to 36 % of the memory bandwidth backward on H100, and are given half (docs/facts/scans.md, section 3);
/// `memory_bound`: by others, of which no measurement is known.
Operator gated_norm(compute::KernelClass kernel_class, std::int64_t elements);

}  // namespace manyworlds::core::workload
