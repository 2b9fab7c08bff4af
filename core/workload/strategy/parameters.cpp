// Parameter counts, term by term.
#include "core/workload/strategy/parameters.hpp"

#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {
namespace {

/// Parameter counts within a layer: sharded over tensor-parallel ranks, and replicated on each of them.
struct ShardedCounts {
  std::int64_t sharded = 0, replicated = 0;
};

std::int64_t norm_parameters(const Model& model) {
  return model.norm == Norm::layer_norm ? 2 * model.hidden : model.hidden;
}

/// Returns the parameters of the up, gate and down matrices of a feed-forward network, without the bias of the last
/// one.
std::int64_t feed_forward_parameters(const Model& model, std::int64_t width) {
  const std::int64_t up = model.activation == Activation::swiglu ? 2 * width : width;
  return model.hidden * (up + width) + (model.biases ? up : 0);
}

ShardedCounts multi_head_attention(const Model& model) {
  const std::int64_t query = model.heads * model.head_width();
  const std::int64_t qkv = query + 2 * model.kv() * model.head_width();
  return {model.hidden * (qkv + query) + (model.biases ? qkv : 0), model.query_key_norm ? 2 * model.head_width() : 0};
}

/// DeepSeek-V2, section 2.1: queries pass through a narrow matrix and a norm, and so do keys together with values; all
/// heads share the rotary part of the keys.
ShardedCounts latent_attention(const Model& model) {
  const std::int64_t query = model.heads * model.key_width();
  const std::int64_t key_value = model.heads * (model.head_width() + model.value_width());
  const std::int64_t output = model.heads * model.value_width() * model.hidden;
  ShardedCounts counts{model.kv_rank * key_value + output,
                       model.hidden * (model.kv_rank + model.rotary_dim) + model.kv_rank};
  if (model.query_rank > 0)
    counts.sharded += model.query_rank * query, counts.replicated += model.hidden * model.query_rank + model.query_rank;
  else
    counts.sharded += model.hidden * query;
  return counts;
}

ShardedCounts dense_part(const Model& model, LayerKind kind) {
  ShardedCounts part = model.is_latent() ? latent_attention(model) : multi_head_attention(model);
  part.replicated +=
      2 * norm_parameters(model) + (model.biases ? model.hidden : 0);  // the bias of the attention output
  if (!kind.experts) {
    part.sharded += feed_forward_parameters(model, model.ffn());
    part.replicated += model.biases ? model.hidden : 0;
    return part;
  }
  part.replicated += (model.hidden + (model.biases ? 1 : 0)) * model.experts;  // the router
  if (model.shared_ffn_hidden > 0) {
    part.sharded += feed_forward_parameters(model, model.shared_ffn_hidden);
    part.replicated += model.biases ? model.hidden : 0;
  }
  return part;
}

/// Returns the model's parameters if each layer with experts had `experts` of them.
std::int64_t parameters_with_experts(const Model& model, std::int64_t experts) {
  const std::int64_t table = model.vocabulary * model.hidden;
  const std::int64_t positions = model.position == Position::learned ? model.sequence * model.hidden : 0;
  std::int64_t sum = table * (model.tied_embeddings ? 1 : 2) + positions + norm_parameters(model);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const LayerKind kind = model.layer_kind(layer);
    const ShardedCounts dense = dense_part(model, kind);
    sum += dense.sharded + dense.replicated + (kind.experts ? experts * expert_parameters(model, 1) : 0);
  }
  return sum;
}

}  // namespace

std::int64_t expert_parameters(const Model& model, std::int64_t etp) {
  return feed_forward_parameters(model, model.expert_ffn()) / etp + (model.biases ? model.hidden : 0);
}

std::int64_t replicated_layer_parameters(const Model& model, LayerKind kind) {
  return dense_part(model, kind).replicated;
}

Parameters layer_parameters(const Model& model, const Strategy& strategy, LayerKind kind) {
  const ShardedCounts dense = dense_part(model, kind);
  Parameters counts{dense.sharded / strategy.tp + dense.replicated, 0};
  if (kind.experts) counts.experts = model.experts / strategy.ep * expert_parameters(model, strategy.etp);
  return counts;
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
  const bool shares_table = model.tied_embeddings && owns_table;
  return norm_parameters(model) + (shares_table ? 0 : token_table_parameters(model, tp));
}

Parameters stage_parameters(const Model& model, const Strategy& strategy, std::int64_t stage) {
  Parameters sum;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const LayerKind kind : chunk_layers(model, strategy, stage, chunk)) {
      const Parameters layer = layer_parameters(model, strategy, kind);
      sum.dense += layer.dense, sum.experts += layer.experts;
    }
  const StageMap stages = strategy.stages();
  if (stages.has_first(stage)) sum.dense += embedding_parameters(model, strategy.tp);
  if (stages.has_last(stage)) sum.dense += head_parameters(model, strategy.tp, stages.first_and_last_share_rank());
  return sum;
}

std::int64_t model_parameters(const Model& model) {
  return parameters_with_experts(model, model.experts);
}

std::int64_t active_parameters(const Model& model) {
  return parameters_with_experts(model, model.experts_per_token);
}

std::int64_t gradient_bytes(const Strategy& strategy) {
  return strategy.stack.reduce_in_16bit ? 2 : 4;
}

}  // namespace manyworlds::core::workload
