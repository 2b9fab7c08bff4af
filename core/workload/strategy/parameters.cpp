// Parameter counts, term by term.
#include "core/workload/strategy/parameters.hpp"

#include "core/workload/model/architecture.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {

std::int64_t norm_parameters(const Model& model) {
  return model.norm == Norm::layer_norm ? 2 * model.hidden : model.hidden;
}

std::int64_t feed_forward_parameters(const Model& model, std::int64_t width) {
  const std::int64_t up = model.up_width(width);
  return model.hidden * (up + width) + (model.biases ? up : 0);
}

std::int64_t expert_parameters(const Model& model, std::int64_t etp) {
  return feed_forward_parameters(model, model.expert_ffn()) / etp + (model.biases ? model.hidden : 0);
}

std::int64_t token_table_parameters(const Model& model, std::int64_t tp) {
  return has_embedding(model) || has_head(model) ? padded_vocabulary(model, tp) / tp * model.hidden : 0;
}

std::int64_t position_parameters(const Model& model) {
  return model.position == Position::learned ? (model.sequence + model.cached_tokens) * model.hidden : 0;
}

std::int64_t embedding_parameters(const Model& model, std::int64_t tp) {
  if (!has_embedding(model)) return 0;
  return token_table_parameters(model, tp) + position_parameters(model);
}

std::int64_t final_norm_parameters(const Model& model) {
  return has_head(model) ? norm_parameters(model) : 0;
}

std::int64_t head_parameters(const Model& model, std::int64_t tp, bool owns_table) {
  if (!has_head(model)) return 0;
  const bool shares_table = model.tied_embeddings && owns_table;
  return norm_parameters(model) + (shares_table ? 0 : token_table_parameters(model, tp));
}

std::int64_t gradient_bytes(const Strategy& strategy) {
  return strategy.stack.reduce_in_16bit ? 2 : 4;
}

}  // namespace manyworlds::core::workload
