// Queries, keys and values of latent attention. No published model has biases there, so there are none.
#include "core/workload/parts/latent_attention.hpp"

namespace manyworlds::core::workload {

PartParameters latent_attention_parameters(const Model& model) {
  const std::int64_t query = model.heads * model.key_width();
  const std::int64_t key_value = model.heads * (model.head_width() + model.value_width());
  const std::int64_t output = model.heads * model.value_width() * model.hidden;
  PartParameters counts{model.kv_rank * key_value + output,
                        model.hidden * (model.kv_rank + model.rotary_dim) + model.kv_rank};
  if (model.query_rank > 0)
    counts.sharded += model.query_rank * query, counts.replicated += model.hidden * model.query_rank + model.query_rank;
  else
    counts.sharded += model.hidden * query;
  return counts;
}

std::string latent_matrices(const Model& model) {
  const std::string queries =
      model.query_rank > 0 ? "(hidden + heads * key_width) * query_rank" : "hidden * heads * key_width";
  return queries +
         " + hidden * (kv_rank + rotary_dim) + kv_rank * heads * (head_dim + value_width) + heads * value_width * "
         "hidden";
}

std::string latent_norms(const Model& model) {
  return model.query_rank > 0 ? " + query_rank + kv_rank" : " + kv_rank";
}

namespace {

using collective::Kind;

/// Weight gradients of all heads in one batched GEMM.
compute::Kernel gradient_by_head(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t tokens,
                                 std::int64_t heads) {
  compute::Kernel result = compute::weight_gradient(name, m, n, tokens);
  result.batch = heads;
  result.bytes *= heads;
  result.flops *= heads;
  return result;
}

/// Brings the narrow keys of all tokens to every rank, and their gradients, which each rank has of its heads, back.
Operator gather_keys(const Model& model, const RankShapes& shapes) {
  const std::int64_t bytes = 2 * shapes.tokens * (model.kv_rank + model.rotary_dim);
  Operator result;
  result.name = "key_value_gather";
  if (shapes.sequence_parallel) block_on(result.forward, result.name, Kind::all_gather, bytes);
  if (shapes.tensor_parallel > 1)
    block_on(result.backward, result.name, shapes.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce, bytes);
  return result;
}

}  // namespace

Operator product_by_head(const RankShapes& shapes, std::string_view name, std::int64_t in, std::int64_t out) {
  Operator result;
  result.name = name;
  result.saved_bytes = 2 * shapes.tokens * shapes.heads * in;
  result.weight_gradient_input_bytes = 2 * shapes.tokens * shapes.heads * (in + out);
  result.forward.push_back(kernel(compute::batched_gemm(name, shapes.tokens, out, in, shapes.heads)));
  result.backward.push_back(kernel(compute::batched_gemm(name, shapes.tokens, in, out, shapes.heads)));
  add_weight_gradient(result.backward, shapes, gradient_by_head(name, out, in, shapes.tokens, shapes.heads));
  return result;
}

void add_latent_attention_input(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes,
                                compute::Dtype dtype, LatentKeys keys) {
  const std::size_t first = operators.size();
  if (model.query_rank > 0) {
    operators.push_back(replicated_linear(shapes, {"query_down", shapes.hidden, model.query_rank, false, dtype}));
    operators.push_back(norm("query_norm", model, shapes, shapes.sp_region_tokens, model.query_rank));
    operators.push_back(column_parallel(shapes, {"query_up", model.query_rank, shapes.query_width(), false, dtype}));
  } else {
    operators.push_back(column_parallel(shapes, {"query", shapes.hidden, shapes.query_width(), false, dtype}));
  }
  operators.push_back(
      replicated_linear(shapes, {"key_value_down", shapes.hidden, model.kv_rank + model.rotary_dim, false, dtype}));
  operators.back().saved_bytes = 0;  // its input is saved for the queries
  operators.push_back(norm("key_value_norm", model, shapes, shapes.sp_region_tokens, model.kv_rank));
  std::int64_t rotated = 2 * shapes.tokens * shapes.query_width();
  if (keys == LatentKeys::by_head) {
    const std::int64_t key_value = shapes.heads * (model.head_width() + shapes.value_dim);
    operators.push_back(column_parallel(shapes, {"key_value_up", model.kv_rank, key_value, false, dtype}));
  } else {
    operators.push_back(gather_keys(model, shapes));
    operators.push_back(product_by_head(shapes, "query_absorb", model.head_width(), model.kv_rank));
    rotated = shapes.tokens * (shapes.heads + 1) * (model.kv_rank + model.rotary_dim);
  }
  // Rotated and plain parts of queries and of keys are concatenated.
  operators.push_back(elementwise("rotary", rotated, 4, 4, 0));
  if (!shapes.stack.rope_fusion)  // before that, the queries of all heads and the one shared key are rotated
    operators.insert(operators.end() - 1, rotary(shapes, shapes.tokens * (shapes.heads + 1) * model.rotary_dim));
  for (std::size_t i = first; i < operators.size(); ++i) {
    Operator& each = operators[i];
    const bool down = i == first || each.name == "key_value_down";  // reads the layer's input
    if (down) mark_input_from(each, recompute::layernorm);
    if (down && each.saved_bytes > 0) each.offload_module = offload::qkv_linear;
    if (each.name == "query_up" || each.name == "key_value_up") mark_input_from(each, recompute::mla_up_proj);
    if (!down) each.in_modules = recompute::mla_up_proj;
  }
}

}  // namespace manyworlds::core::workload
