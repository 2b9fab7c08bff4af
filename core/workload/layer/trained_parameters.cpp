#include "core/workload/layer/trained_parameters.hpp"

#include <algorithm>

#include "core/workload/layer/distillation.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/layer_kinds.hpp"
#include "core/workload/parts/registry.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {
namespace {

/// Weights of the frozen parts of a layer: those of its parts but routed experts, and those of one routed expert, or of
/// one of the ranks that share it.
struct FrozenWeights {
  PartParameters dense;
  std::int64_t expert = 0;
};

FrozenWeights frozen_weights(const Model& model, LayerKind kind, std::int64_t etp) {
  FrozenWeights sum;
  for_each_branch(model, kind, [&](const LayerBranch& branch) {
    if (!is_frozen(branch.model)) return;
    const PartParameters part = branch.part.parameters(branch.model);
    sum.dense.sharded += part.sharded;
    sum.dense.replicated += part.replicated + branch.options.norm_count() * norm_parameters(branch.model);
    if (branch.part.has_experts()) sum.expert += branch.part.expert_parameters(branch.model, etp);
  });
  return sum;
}

/// Whether a layer may read what the embedding gives. A network in front of the model's own, of other widths or tokens,
/// does not.
bool follows_embedding(const Model& model, LayerKind kind) {
  if (!model.architecture) return true;
  const Model& stream = model.architecture->stream_of(model, kind);
  return stream.hidden == model.hidden && stream.sequence == model.sequence;
}

bool has_trained(const Model& model, LayerKind kind) {
  return trained_layer_parameters(model, Strategy{}, kind).total() > 0;
}

}  // namespace

std::int64_t trained_parameters(const Model& model) {
  if (is_inference(model)) return 0;
  std::int64_t layers = 0, trained_layers = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const LayerKind kind = model.layer_kind(layer);
    const FrozenWeights frozen = frozen_weights(model, kind, 1);
    const Parameters all = layer_parameters(model, Strategy{}, kind);
    layers += all.total();
    trained_layers += all.total() - frozen.dense.sharded - frozen.dense.replicated - model.experts * frozen.expert;
  }
  return is_frozen(model) ? trained_layers : model_parameters(model) - layers + trained_layers;
}

Parameters trained_layer_parameters(const Model& model, const Strategy& strategy, LayerKind kind) {
  if (is_inference(model)) return {};
  const FrozenWeights frozen = frozen_weights(model, kind, strategy.etp);
  Parameters trained = layer_parameters(model, strategy, kind);
  trained.dense -= frozen.dense.sharded / strategy.tp + frozen.dense.replicated;
  trained.experts -= model.experts / strategy.ep * frozen.expert;
  return trained;
}

std::int64_t trained_replicated_parameters(const Model& model, const Strategy& strategy, LayerKind kind) {
  if (is_inference(model)) return 0;
  return replicated_layer_parameters(model, strategy, kind) - frozen_weights(model, kind, 1).dense.replicated;
}

Parameters trained_stage_parameters(const Model& model, const Strategy& strategy, std::int64_t stage) {
  if (is_inference(model)) return {};
  Parameters trained = stage_parameters(model, strategy, stage);
  const Parameters of_teacher = teacher_parameters(model, strategy, stage);
  trained.dense -= of_teacher.dense, trained.experts -= of_teacher.experts;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const LayerKind kind : chunk_layers(model, strategy, stage, chunk)) {
      if (!has_frozen_part(model, kind)) continue;
      const Parameters all = layer_parameters(model, strategy, kind),
                       of_layer = trained_layer_parameters(model, strategy, kind);
      trained.dense -= all.dense - of_layer.dense, trained.experts -= all.experts - of_layer.experts;
    }
  if (!is_frozen(model)) return trained;
  const StageMap stages = strategy.stages();
  if (stages.has_first(stage)) trained.dense -= embedding_parameters(model, strategy.tp);
  if (stages.has_last(stage)) trained.dense -= head_parameters(model, strategy.tp, stages.first_and_last_share_rank());
  return trained;
}

bool has_frozen_part(const Model& model, LayerKind kind) {
  bool any = false;
  for_each_branch(model, kind, [&](const LayerBranch& branch) { any |= is_frozen(branch.model); });
  return any;
}

bool has_frozen_part(const Model& model) {
  const std::vector<LayerKind> kinds = layer_kinds(model);
  return std::any_of(kinds.begin(), kinds.end(), [&](LayerKind kind) { return has_frozen_part(model, kind); });
}

std::int64_t forward_only_layers(const Model& model, const Strategy& strategy) {
  const bool embedding_trained = has_embedding(model) && !is_frozen(model);
  const std::int64_t end = layers_before_virtual_stage(model, strategy, 1);
  for (std::int64_t layer = 0; layer < end; ++layer) {
    const LayerKind kind = model.layer_kind(layer);
    if (!has_frozen_part(model, kind) || has_trained(model, kind)) return layer;
    if (embedding_trained && follows_embedding(model, kind)) return layer;
  }
  return end;
}

}  // namespace manyworlds::core::workload
