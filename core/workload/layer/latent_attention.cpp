// Queries, keys and values of latent attention. Biases are those of no published model: there are none.
#include "core/workload/layer/latent_attention.hpp"

namespace manyworlds::core::workload {

void add_latent_attention_input(std::vector<Operator>& operators, const Model& model, const Cut& rank,
                                compute::Dtype dtype) {
  const std::size_t first = operators.size();
  if (model.query_rank > 0) {
    operators.push_back(whole_linear(rank, {"query_down", rank.hidden, model.query_rank, false, dtype}));
    operators.push_back(norm("query_norm", rank.region_tokens * model.query_rank));
    operators.push_back(column_parallel(rank, {"query_up", model.query_rank, rank.query_width(), false, dtype}));
  } else {
    operators.push_back(column_parallel(rank, {"query", rank.hidden, rank.query_width(), false, dtype}));
  }
  operators.push_back(
      whole_linear(rank, {"key_value_down", rank.hidden, model.kv_rank + model.rotary_dim, false, dtype}));
  operators.back().kept_bytes = 0;  // its input is kept for the queries
  operators.push_back(norm("key_value_norm", rank.region_tokens * model.kv_rank));
  const std::int64_t key_value = rank.heads * (model.head_width() + rank.value_dim);
  operators.push_back(column_parallel(rank, {"key_value_up", model.kv_rank, key_value, false, dtype}));
  // Turned parts and plain parts are put together, of queries and of keys.
  operators.push_back(elementwise("rotary", 2 * rank.tokens * rank.query_width(), 4, 4, 0));
  if (!rank.stack.rope_fusion)  // of all heads' queries, and of the keys' one, before
    operators.insert(operators.end() - 1, rotary(rank, rank.tokens * (rank.heads + 1) * model.rotary_dim));
  for (std::size_t i = first; i < operators.size(); ++i) {
    Operator& each = operators[i];
    const bool down = i == first || each.name == "key_value_down";  // of the layer's input
    if (down) takes(each, again::layernorm);
    if (down && each.kept_bytes > 0) each.offloaded_as = away::qkv_linear;
    if (each.name == "query_up" || each.name == "key_value_up") takes(each, again::mla_up_proj);
    if (!down) each.part_of = again::mla_up_proj;
  }
}

}  // namespace manyworlds::core::workload
