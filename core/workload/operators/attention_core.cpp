// Kernels of scores, softmax and values, fused or one by one.
#include "core/workload/operators/attention_core.hpp"

#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/workload/operators/context_exchange.hpp"
#include "core/workload/operators/context_ring.hpp"
#include "core/workload/operators/document_attention.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::batched_gemm;
using compute::fused_attention;
using compute::KernelClass;
using compute::memory_bound;

/// Scale, mask and softmax of attention's scores: one kernel, or Megatron-LM's forward_torch_softmax() under
/// apply_query_key_layer_scaling (v2.5, megatron/model/fused_softmax.py): a cast to fp32, scale, mask, softmax and a
/// cast back, each with its gradient. Saved is the result, in fp32 that of the softmax; without dropout, in 16 bits as
/// well, for the GEMM behind it.
Operator masked_softmax(const RankShapes& shapes, std::int64_t scores, bool dropout) {
  const bool fused = shapes.stack.masked_softmax_fusion;
  Operator result =
      fused ? elementwise("softmax", scores, 4, 6, 0) : chain("softmax", scores, {6, 8, 8, 8, 6}, {6, 12, 8, 8, 6}, 0);
  result.attention_core_bytes = (fused ? 2 : dropout ? 4 : 6) * scores;
  return result;
}

/// Scores = Q K^T, masked softmax, dropout, values = P V, with no fusion across them. Without dropout
/// the softmax's output is the second GEMM's input and is saved once.
void add_unfused_attention(std::vector<Operator>& operators, const RankShapes& shapes, bool dropout) {
  const std::int64_t s = shapes.sequence, keys = shapes.keys, d = shapes.head_dim, v = shapes.value_dim;
  const std::int64_t batch = shapes.samples * shapes.heads, scores = batch * s * keys;
  Operator score;
  score.name = "attention_scores";
  score.saved_bytes = score.module_output_bytes = 2 * shapes.tokens * (shapes.heads + shapes.kv_heads) * d;
  score.forward.push_back(kernel(batched_gemm(score.name, s, keys, d, batch)));
  score.backward.push_back(kernel(batched_gemm("attention_query_gradient", s, d, keys, batch)));
  score.backward.push_back(kernel(batched_gemm("attention_key_gradient", keys, d, s, batch)));

  Operator value;
  value.name = "attention_values";
  value.saved_bytes = value.module_output_bytes = 2 * shapes.tokens * shapes.kv_heads * v;
  value.attention_core_bytes = dropout ? 2 * scores : 0;
  value.forward.push_back(kernel(batched_gemm(value.name, s, v, keys, batch)));
  value.backward.push_back(kernel(batched_gemm("attention_probability_gradient", s, keys, v, batch)));
  value.backward.push_back(kernel(batched_gemm("attention_value_gradient", keys, v, s, batch)));

  operators.push_back(score);
  operators.push_back(masked_softmax(shapes, scores, dropout));
  if (dropout) {
    operators.push_back(elementwise("attention_dropout", scores, 5, 5, 0));
    operators.back().attention_core_bytes = scores;
  }
  operators.push_back(value);
}

/// Returns the kernels of a forward and of a backward pass.
std::pair<KernelClass, KernelClass> attention_classes(AttentionKernel kind) {
  if (kind == AttentionKernel::flash) return {KernelClass::flash_forward, KernelClass::flash_backward};
  if (kind == AttentionKernel::flash2) return {KernelClass::flash2_forward, KernelClass::flash2_backward};
  return {KernelClass::cudnn_forward, KernelClass::cudnn_backward};
}

/// A kernel of variable lengths sees the samples of a micro-batch as one, of documents.
WorkItem packed_pass(KernelClass kernel_class, const RankShapes& shapes, std::int64_t key_heads,
                     const DocumentWork& documents) {
  const bool forward = kernel_class == attention_classes(shapes.stack.attention).first;
  WorkItem result = kernel(compute::packed_attention(
      "attention", kernel_class,
      {shapes.samples * shapes.sequence, shapes.samples * shapes.keys, documents.pairs, shapes.head_dim,
       shapes.value_dim, shapes.heads, key_heads, shapes.window, shapes.cut_by_mask},
      documents.tiles, forward ? documents.longest_keys : documents.longest_queries));
  result.kernel()->depends_on_load = true;  // no row of measured times tells the documents
  return result;
}

/// Scores are never written: in addition to Q, K and V only one logarithm per query and head is saved, in fp32. Causal
/// kernels compute half of the pairs.
void add_fused_attention(std::vector<Operator>& operators, const RankShapes& shapes, AttentionKernel kind,
                         const std::optional<DocumentWork>& documents) {
  const std::int64_t key_heads = shapes.stack.grouped_query_fusion ? shapes.kv_heads : shapes.heads;
  const auto pass = [&](KernelClass kernel_class) {
    if (documents) return packed_pass(kernel_class, shapes, key_heads, *documents);
    return kernel(fused_attention(
        "attention", kernel_class,
        {shapes.sequence, shapes.keys, shapes.pairs, shapes.head_dim, shapes.value_dim, shapes.samples * shapes.heads,
         shapes.samples * key_heads, shapes.window, shapes.cut_by_mask}));
  };
  Operator result;
  result.name = "attention";
  result.module_output_bytes = 2 * shapes.tokens * shapes.qkv_width();
  result.saved_bytes = result.module_output_bytes + 4 * shapes.tokens * shapes.heads;
  const auto [forward, backward] = attention_classes(kind);
  result.forward.push_back(pass(forward));
  result.backward.push_back(pass(backward));
  operators.push_back(result);
}

/// Repeats keys and values for each head that shares them; the backward pass sums the gradients of these heads. A rank
/// without keys of other ranks saves the repeated tensors.
void repeat_keys(std::vector<Operator>& core, const RankShapes& shapes) {
  const std::int64_t width = 2 * shapes.samples * shapes.keys * (shapes.head_dim + shapes.value_dim);
  Operator result;
  result.name = "repeat_keys";
  if (shapes.keys == shapes.sequence) result.saved_bytes = width * (shapes.heads - shapes.kv_heads);
  result.forward.push_back(kernel(memory_bound(result.name, width * (shapes.kv_heads + shapes.heads))));
  result.backward.push_back(kernel(memory_bound(result.name, width * (shapes.kv_heads + shapes.heads))));
  core.insert(core.begin(), std::move(result));
}

DocumentShare share_of_documents(const Strategy& strategy) {
  if (strategy.cp == 1 || strategy.cp_comm == ContextExchange::ulysses) return DocumentShare::whole;
  return strategy.cp_comm == ContextExchange::ring ? DocumentShare::ring_block : DocumentShare::chunks;
}

/// Gives GEMMs of scores and values the FLOPs of the pairs inside documents, of both sides of the diagonal as without
/// documents.
void count_documents(std::vector<Operator>& core, const RankShapes& shapes, const DocumentWork& documents) {
  const Int128 square = Int128{shapes.samples} * shapes.sequence * shapes.keys;
  for (Operator& each : core)
    for (OpList* ops : {&each.forward, &each.backward})
      for (WorkItem& work : *ops) {
        compute::Kernel& shape = work.kernel()->shape;
        if (shape.kernel_class != KernelClass::gemm) continue;
        shape.flops = static_cast<std::int64_t>(Int128{shape.flops} * 2 * documents.pairs / square);
      }
}

}  // namespace

std::vector<Operator> attention_core(const RankShapes& shapes, const Strategy& strategy, bool dropout,
                                     const Documents* documents) {
  const std::int64_t cp = strategy.cp;
  const bool in_ring = cp > 1 && strategy.cp_comm == ContextExchange::ring,
             by_blocks = cp > 1 && strategy.cp_comm == ContextExchange::gathered_blocks,
             by_heads = cp > 1 && strategy.cp_comm == ContextExchange::ulysses;
  const RankShapes core_shapes = in_ring || by_blocks ? ring_block_shapes(shapes, cp)
                                 : by_heads           ? head_parallel_shapes(shapes, cp)
                                                      : shapes;
  MANYWORLDS_CHECK(documents == nullptr || !by_blocks, "blocks of keys are gathered, and samples have documents");
  std::optional<DocumentWork> work;
  if (documents != nullptr)
    work = document_work(*documents, shapes.samples, shapes.window, share_of_documents(strategy), cp);
  std::vector<Operator> operators;
  if (strategy.stack.attention == AttentionKernel::unfused) {
    add_unfused_attention(operators, core_shapes, dropout);
    if (work) count_documents(operators, core_shapes, *work);
  } else {
    add_fused_attention(operators, core_shapes, strategy.stack.attention, work);
  }
  if (by_blocks) operators = {attend_to_gathered_blocks(operators.front(), shapes, cp)};
  if (!strategy.stack.grouped_query_fusion && shapes.kv_heads < shapes.heads) repeat_keys(operators, core_shapes);
  if (in_ring)
    operators = {ring_attention(operators, shapes, cp)};
  else if (by_heads)
    operators = exchange_tokens_for_heads(operators, shapes, cp);
  else if (cp > 1 && !by_blocks)
    operators = gather_keys(operators, shapes, cp);
  for (Operator& each : operators) {
    each.in_modules = recompute::core_attn;
    if (!by_heads) each.input_from = recompute::mla_up_proj;  // otherwise the saved inputs are those after the exchange
    each.offload_module = offload::core_attn;
  }
  return operators;
}

std::int64_t score_bytes(const RankShapes& shapes) {
  if (shapes.stack.attention != AttentionKernel::unfused) return 0;
  return 2 * shapes.samples * shapes.heads * shapes.sequence * shapes.keys;
}

std::int64_t score_working_bytes(const RankShapes& shapes) {
  return (shapes.stack.masked_softmax_fusion ? 2 : 5) * score_bytes(shapes);
}

void hold_other_keys(std::vector<Operator>& core, const RankShapes& shapes, std::int64_t key_tokens) {
  const std::int64_t elements = (key_tokens - shapes.tokens) * shapes.kv_heads;
  for (Operator& each : core) {
    const bool whole = each.name == "attention" || each.name == "attention_ring" || each.name == "attention_blocks";
    const std::int64_t width = whole                             ? shapes.head_dim + shapes.value_dim
                               : each.name == "attention_scores" ? shapes.head_dim
                               : each.name == "attention_values" ? shapes.value_dim
                                                                 : 0;
    each.saved_bytes += 2 * elements * width;
    each.module_output_bytes += 2 * elements * width;
  }
}

}  // namespace manyworlds::core::workload
