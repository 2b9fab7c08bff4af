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

void add_latent_attention_input(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes,
                                compute::Dtype dtype) {
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
  const std::int64_t key_value = shapes.heads * (model.head_width() + shapes.value_dim);
  operators.push_back(column_parallel(shapes, {"key_value_up", model.kv_rank, key_value, false, dtype}));
  // Rotated and plain parts of queries and of keys are concatenated.
  operators.push_back(elementwise("rotary", 2 * shapes.tokens * shapes.query_width(), 4, 4, 0));
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
