#include "core/workload/strategy/stage_boundaries.hpp"

#include <algorithm>

#include "core/workload/model/architecture.hpp"
#include "core/workload/model/wide_stream.hpp"
#include "core/workload/strategy/contiguous_split.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {
namespace {

/// Returns the model whose hidden states there are behind the first `layers` layers.
const Model& stream_behind(const Model& model, std::int64_t layers) {
  if (!model.architecture || layers == 0 || layers >= model.layers) return model;
  return model.architecture->stream_of(model, model.layer_kind(layers - 1));
}

bool same_states(const Model& one, const Model& other) {
  return one.hidden == other.hidden && one.sequence == other.sequence;
}

/// Returns what is sent where hidden states are those of `stream`, and a token has `vectors` of them.
StageBoundary boundary_of(const Model& model, const Strategy& strategy, const Model& stream, std::int64_t vectors) {
  const RankShapes own = stream_shapes(model, strategy);
  std::int64_t bytes = vectors * own.boundary_bytes();
  if (!same_states(stream, model))
    bytes =
        vectors * stream_shapes(stream, strategy).boundary_bytes() + (has_embedding(model) ? own.boundary_bytes() : 0);
  // One tensor has the hidden states of both models, and another one their gradients, zeros for the teacher's (ModelOpt
  // @5a4242f, distill/plugins/megatron.py, get_tensor_shapes_adjust_fn_for_distillation()).
  if (model.teacher) bytes += stream_shapes(*model.teacher, strategy).boundary_bytes();
  const std::int64_t ranks = own.scatters_transfers() ? own.tensor_parallel : 1;
  return {bytes, (bytes + ranks - 1) / ranks};
}

/// Whether the last stage has no layers, or may have none once those of its stages are chosen.
bool head_may_be_alone(const Model& model, const Strategy& strategy) {
  if (is_weighed(strategy.split) && strategy.stage_layers.empty()) return true;
  return layers_before_virtual_stage(model, strategy, strategy.stages().count() - 1) == model.layers;
}

/// Returns the least vectors that a token has between two layers, or in front of the head if that may be alone.
std::int64_t least_vectors(const Model& model, const Strategy& strategy) {
  std::int64_t least = streams_behind(model, 0);
  for (std::int64_t layers = 1; layers < model.layers && least > 1; ++layers)
    least = std::min(least, streams_behind(model, layers));
  return least > 1 && head_may_be_alone(model, strategy) ? std::min(least, streams_behind(model, model.layers)) : least;
}

}  // namespace

StageBoundary stage_boundary(const Model& model, const Strategy& strategy, std::int64_t virtual_stage) {
  const std::int64_t layers = layers_before_virtual_stage(model, strategy, virtual_stage);
  return boundary_of(model, strategy, stream_behind(model, layers), streams_behind(model, layers));
}

StageBoundary mean_boundary(const Model& model, const Strategy& strategy) {
  StageBoundary sum;
  const std::int64_t boundaries = strategy.stages().count() - 1;
  if (boundaries == 0) return boundary_of(model, strategy, model, 1);
  for (std::int64_t stage = 1; stage <= boundaries; ++stage) {
    const StageBoundary one = stage_boundary(model, strategy, stage);
    sum.bytes += one.bytes, sum.transfer_bytes += one.transfer_bytes;
  }
  return {sum.bytes / boundaries, sum.transfer_bytes / boundaries};
}

StageBoundary least_boundary(const Model& model, const Strategy& strategy) {
  const std::int64_t vectors = least_vectors(model, strategy);
  StageBoundary least = boundary_of(model, strategy, model, vectors);
  const Model* last = &model;
  for (std::int64_t layers = 1; layers < model.layers && model.architecture; ++layers) {
    const Model& stream = stream_behind(model, layers);
    if (same_states(stream, *last)) continue;
    last = &stream;
    if (const StageBoundary one = boundary_of(model, strategy, stream, vectors); one.bytes < least.bytes) least = one;
  }
  return least;
}

}  // namespace manyworlds::core::workload
