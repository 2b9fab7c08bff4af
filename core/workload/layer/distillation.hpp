// The teacher of distillation on the ranks of its student, as ModelOpt runs it with Megatron-Core (TensorRT Model
// Optimizer @5a4242f, modelopt/torch/distill/plugins/megatron.py): both models have the same parallel sizes, and every
// pipeline rank has layers of both. The forward pass of a micro-batch goes through the teacher's layers of the stage,
// without a graph of gradients (torch.no_grad()), and then through the student's; hidden states of both travel on
// together.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model/distillation.hpp"
#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/parameters.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Returns the student's strategy as the teacher has it: its layers are dealt out evenly, and nothing of it is saved,
/// recomputed, offloaded or exchanged.
Strategy teacher_strategy(const Strategy& strategy);

/// Returns the parameters of the teacher on pipeline rank `stage`; none without a teacher.
Parameters teacher_parameters(const Model& model, const Strategy& strategy, std::int64_t stage);

/// Returns the operators behind the last layer of a teacher, up to its logits.
std::vector<Operator> teacher_head_operators(const Model& teacher, const Strategy& strategy);

/// Returns the divergence of the student's distribution from the teacher's, from the logits of both, by PyTorch's
/// kernels, one by one (LogitsKLLoss.forward(); gradients as tools/autograd/derivatives.yaml has them). Over a sharded
/// vocabulary the maxima and the sums of exponentials of both are all-reduced. `beside_cross_entropy`: the gradient is
/// added to that of the cross entropy.
Operator distillation_loss(const RankShapes& shapes, bool beside_cross_entropy);

/// Bytes for each of a rank's logits that the loss keeps for its backward pass: the teacher's probabilities and the
/// exponentials of the student's logits, or their log-softmax, in fp32.
inline constexpr std::int64_t kDistillationSavedBytes = 8;

/// Returns the bytes for each logit that the loss needs besides while it runs: when kl_div() multiplies, both logits in
/// 16 bits and in fp32 and, with a sharded vocabulary, both log-probabilities, their difference and the product;
/// without one, xlogy()'s result, the product and their difference.
std::int64_t distillation_transient_bytes(const RankShapes& shapes);

/// Returns the GEMM and attention FLOPs of a teacher's forward pass over one sequence, with unpadded vocabulary.
std::int64_t forward_flops_per_sequence(const Model& teacher);

}  // namespace manyworlds::core::workload
