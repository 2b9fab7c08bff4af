// The loss behind the vocabulary layer: of all tokens at once, or in chunks (Stack::loss_chunks). Chunks go one after
// another through the vocabulary layer and the loss, each followed at once by its backward pass, so that the logits of
// one chunk alone are in memory: torchtitan's ChunkedLossWrapper (@b5bcd76, torchtitan/components/loss.py), in the
// order of Liger Kernel's fused linear cross entropy (Hsu et al. 2024) and of DeepSpeed's
// TiledFusedLogitsLoss.
#pragma once

#include "core/workload/model/model.hpp"
#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {

/// Returns the loss of all tokens, whose vocabulary may be sharded: Megatron-LM's fused cross entropy, or PyTorch's
/// kernels, one by one.
Operator cross_entropy(const RankShapes& shapes);

/// Returns the vocabulary layer and its loss in shapes.stack.loss_chunks chunks of equally many tokens, which must
/// divide them. All of it is the forward pass, in which the framework runs it, gradients of the weight included, which
/// every chunk adds up; no backward kernels run if nothing is trained, and no gradients of the weight if it is frozen.
/// Under sequence parallelism the hidden states are gathered once, before the first chunk. The chunks' gradients of
/// hidden states are copied into one tensor in fp32, which is cast to 16 bits and saved; the backward pass sums these
/// over the shards of the vocabulary, once.
Operator loss_in_chunks(const RankShapes& shapes, const Model& model);

/// Bytes of each hidden state's element that such a loss has besides logits: the element in 16 bits and its gradient in
/// fp32, and in the end the latter in 16 bits as well, which alone remains.
inline constexpr std::int64_t kChunkedHiddenBytes = 2 + 4, kChunkedGradientBytes = 2;

}  // namespace manyworlds::core::workload
