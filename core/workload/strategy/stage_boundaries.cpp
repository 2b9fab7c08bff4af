#include "core/workload/strategy/stage_boundaries.hpp"

#include <algorithm>

#include "core/workload/model/architecture.hpp"
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

/// Returns what is sent where hidden states are those of `stream`.
StageBoundary boundary_of(const Model& model, const Strategy& strategy, const Model& stream) {
  const RankShapes own = stream_shapes(model, strategy);
  std::int64_t bytes = own.boundary_bytes();
  if (!same_states(stream, model))
    bytes = stream_shapes(stream, strategy).boundary_bytes() + (has_embedding(model) ? bytes : 0);
  // One tensor has the hidden states of both models, and another one their gradients, zeros for the teacher's (ModelOpt
  // @5a4242f, distill/plugins/megatron.py, get_tensor_shapes_adjust_fn_for_distillation()).
  if (model.teacher) bytes += stream_shapes(*model.teacher, strategy).boundary_bytes();
  const std::int64_t ranks = own.scatters_transfers() ? own.tensor_parallel : 1;
  return {bytes, (bytes + ranks - 1) / ranks};
}

}  // namespace

StageBoundary stage_boundary(const Model& model, const Strategy& strategy, std::int64_t virtual_stage) {
  const std::int64_t layers = layers_before_virtual_stage(model, strategy, virtual_stage);
  return boundary_of(model, strategy, stream_behind(model, layers));
}

StageBoundary mean_boundary(const Model& model, const Strategy& strategy) {
  StageBoundary sum;
  const std::int64_t boundaries = strategy.stages().count() - 1;
  if (boundaries == 0) return boundary_of(model, strategy, model);
  for (std::int64_t stage = 1; stage <= boundaries; ++stage) {
    const StageBoundary one = stage_boundary(model, strategy, stage);
    sum.bytes += one.bytes, sum.transfer_bytes += one.transfer_bytes;
  }
  return {sum.bytes / boundaries, sum.transfer_bytes / boundaries};
}

StageBoundary least_boundary(const Model& model, const Strategy& strategy) {
  StageBoundary least = boundary_of(model, strategy, model);
  const Model* last = &model;
  for (std::int64_t layers = 1; layers < model.layers && model.architecture; ++layers) {
    const Model& stream = stream_behind(model, layers);
    if (same_states(stream, *last)) continue;
    last = &stream;
    if (const StageBoundary one = boundary_of(model, strategy, stream); one.bytes < least.bytes) least = one;
  }
  return least;
}

}  // namespace manyworlds::core::workload
