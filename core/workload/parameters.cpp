// Parameter counts, term by term.
#include "core/workload/parameters.hpp"

#include "core/workload/cut.hpp"

namespace manyworlds::core::workload {
namespace {

std::int64_t norm_parameters(const Model& model) {
  return model.norm == Norm::layer_norm ? 2 * model.hidden : model.hidden;
}

}  // namespace

std::int64_t replicated_layer_parameters(const Model& model) {
  return 2 * norm_parameters(model) + (model.biases ? 2 * model.hidden : 0);
}

std::int64_t layer_parameters(const Model& model, std::int64_t tp) {
  const std::int64_t query = model.heads * model.head_width();
  const std::int64_t qkv = query + 2 * model.kv() * model.head_width();
  const std::int64_t up = model.activation == Activation::swiglu ? 2 * model.ffn() : model.ffn();
  const std::int64_t weights = model.hidden * (qkv + query + up + model.ffn());
  const std::int64_t column_biases = model.biases ? qkv + up : 0;
  return (weights + column_biases) / tp + replicated_layer_parameters(model);
}

std::int64_t token_table_parameters(const Model& model, std::int64_t tp) {
  return padded_vocabulary(model, tp) / tp * model.hidden;
}

std::int64_t embedding_parameters(const Model& model, std::int64_t tp) {
  const std::int64_t positions = model.position == Position::learned ? model.sequence * model.hidden : 0;
  return token_table_parameters(model, tp) + positions;
}

std::int64_t final_norm_parameters(const Model& model) {
  return norm_parameters(model);
}

std::int64_t head_parameters(const Model& model, std::int64_t tp, bool owns_table) {
  const bool shares = model.tied_embeddings && owns_table;
  return norm_parameters(model) + (shares ? 0 : token_table_parameters(model, tp));
}

std::int64_t stage_parameters(const Model& model, const Strategy& strategy, std::int64_t stage) {
  std::int64_t sum = strategy.virtual_stages * layers_per_chunk(model, strategy) * layer_parameters(model, strategy.tp);
  if (stage == 0) sum += embedding_parameters(model, strategy.tp);
  if (stage == strategy.pp - 1) sum += head_parameters(model, strategy.tp, strategy.pp == 1);
  return sum;
}

std::int64_t model_parameters(const Model& model) {
  const std::int64_t table = model.vocabulary * model.hidden;
  const std::int64_t positions = model.position == Position::learned ? model.sequence * model.hidden : 0;
  return model.layers * layer_parameters(model, 1) + table * (model.tied_embeddings ? 1 : 2) + positions +
         norm_parameters(model);
}

}  // namespace manyworlds::core::workload
