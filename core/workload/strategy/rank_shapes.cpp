// The shapes of a model on one rank after tensor, sequence and context parallelism.
#include "core/workload/strategy/rank_shapes.hpp"

#include <algorithm>
#include <string_view>

#include "core/base/error.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/strategy/contiguous_split.hpp"

namespace manyworlds::core::workload {
namespace {

std::int64_t share(std::int64_t whole, std::int64_t parts, std::string_view what) {
  MANYWORLDS_CHECK(parts > 0 && whole > 0 && whole % parts == 0, "{} = {} over {} parts", what, whole, parts);
  return whole / parts;
}

}  // namespace

std::int64_t padded_vocabulary(const Model& model, std::int64_t tp) {
  const std::int64_t multiple = 128 * tp;
  return (model.vocabulary + multiple - 1) / multiple * multiple;
}

SplitByCost split_by_cost(const Model& model, std::int64_t stages) {
  const std::int64_t layer = 4 * model.hidden + 3 * model.ffn(), total = model.layers * layer + model.vocabulary;
  SplitByCost split{std::vector<std::int64_t>(static_cast<std::size_t>(stages), 0), 0};
  for (std::int64_t dealt = 1; dealt <= model.layers; ++dealt) {
    ++split.layers[static_cast<std::size_t>(split.head_stage)];
    if (dealt * layer * stages > total * (split.head_stage + 1)) ++split.head_stage;
  }
  return split;
}

namespace {

/// The head stands with the loss in the last stage, and with it the layers of its stage. Stages without either, which
/// nanotron has behind it, come before it.
std::int64_t layers_before_by_cost(const Model& model, std::int64_t stages, std::int64_t virtual_stage) {
  const SplitByCost split = split_by_cost(model, stages);
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < std::min(virtual_stage, split.head_stage); ++i)
    before += split.layers[static_cast<std::size_t>(i)];
  return before;
}

}  // namespace

std::int64_t layers_before_virtual_stage(const Model& model, const Strategy& strategy, std::int64_t virtual_stage) {
  const std::int64_t stages = strategy.stages().count();
  if (virtual_stage == stages) return model.layers;
  if (!strategy.stage_layers.empty()) {
    std::int64_t before = 0;
    for (std::int64_t i = 0; i < virtual_stage; ++i) before += strategy.stage_layers.at(static_cast<std::size_t>(i));
    return before;
  }
  if (strategy.split == LayerSplit::light_ends)
    return virtual_stage == 0 ? 0 : virtual_stage * share(model.layers + 2, stages, "layers + 2") - 1;
  if (strategy.split == LayerSplit::by_cost) return layers_before_by_cost(model, stages, virtual_stage);
  if (strategy.split == LayerSplit::light_last) return virtual_stage * ((model.layers + stages - 1) / stages);
  // Until weighed stages are listed they have about as many layers each, so that rules may look at them.
  if (is_weighed(strategy.split)) return std::min(virtual_stage * ((model.layers + stages - 1) / stages), model.layers);
  return std::min(virtual_stage * share(model.layers + strategy.empty_layers, stages, "layers"), model.layers);
}

std::vector<LayerKind> chunk_layers(const Model& model, const Strategy& strategy, std::int64_t stage,
                                    std::int64_t chunk) {
  const std::int64_t virtual_stage = strategy.stages().of(stage, chunk);
  const std::int64_t end = layers_before_virtual_stage(model, strategy, virtual_stage + 1);
  std::vector<LayerKind> kinds;
  for (std::int64_t layer = layers_before_virtual_stage(model, strategy, virtual_stage); layer < end; ++layer)
    kinds.push_back(model.layer_kind(layer));
  if (strategy.stages().is_last(stage, chunk))
    for (std::int64_t layer = 0; layer < model.mtp_layers; ++layer) kinds.push_back(mtp_kind(model));
  return kinds;
}

namespace {

/// Returns the pairs of a new token and a key of its own sample: the cached ones, itself and the new ones before it, at
/// most `window` of them. Their number is exact: a step may have one new token.
std::int64_t pairs_behind_cache(const Model& model, LayerKind kind) {
  const std::int64_t all = model.cached_tokens + model.sequence, reach = kind.windowed ? model.window : all;
  const std::int64_t free = std::clamp<std::int64_t>(reach - model.cached_tokens, 0, model.sequence);  // see all
  return free * model.cached_tokens + free * (free + 1) / 2 + (model.sequence - free) * reach;
}

/// Returns the pairs of a query and a key: a query sees the keys before it, at most `window` of them; without a window
/// these are about half of s x s. Context-parallel ranks hold blocks from both ends of a sample, so that all have the
/// same number of pairs.
std::int64_t attended_pairs(const Model& model, std::int64_t cp, LayerKind kind) {
  if (is_generation(model)) return pairs_behind_cache(model, kind);
  const std::int64_t reach = kind.windowed ? std::min(model.window, model.sequence) : model.sequence;
  return reach * (2 * model.sequence - reach) / (2 * cp);
}

}  // namespace

std::int64_t weight_ranks(const Strategy& strategy, Modules part) {
  return (strategy.data_parts & part) != 0 ? 1 : strategy.tp;
}

Strategy strategy_of_part(const Strategy& strategy, Modules part) {
  Strategy result = strategy;
  if (weight_ranks(strategy, part) == strategy.tp) return result;
  result.micro_batch = share(strategy.micro_batch, strategy.tp, "micro_batch");
  result.dp = strategy.dp * strategy.tp;
  result.tp = 1;
  result.sequence_parallel = false;
  return result;
}

RankShapes stream_shapes(const Model& model, const Strategy& strategy) {
  RankShapes shapes;
  shapes.tensor_parallel = strategy.tp;
  shapes.sequence_parallel = strategy.sequence_parallel && strategy.tp > 1;
  shapes.overlap_tensor = strategy.stack.overlap_tensor && shapes.sequence_parallel;
  shapes.overlap_input_gradient = strategy.stack.overlap_input_gradient;
  shapes.stack = strategy.stack;
  shapes.samples = strategy.micro_batch;
  shapes.sequence = share(model.sequence, strategy.cp, "sequence");
  shapes.keys = model.sequence + model.cached_tokens;
  shapes.tokens = strategy.micro_batch * shapes.sequence;
  const std::int64_t sp_sequence = share(shapes.sequence, shapes.sequence_parallel ? strategy.tp : 1, "sequence");
  shapes.sp_region_tokens = strategy.micro_batch * sp_sequence;
  if (shapes.overlap_tensor && strategy.stack.tensor_chunks > 0) {
    shapes.tensor_chunks = strategy.stack.tensor_chunks;
    share(shapes.tokens, shapes.tensor_parallel * shapes.tensor_chunks, "tokens of a micro-batch");
  }
  shapes.hidden = model.hidden;
  return shapes;
}

void add_attention_shapes(RankShapes& shapes, const Model& model, const Strategy& strategy, LayerKind kind) {
  shapes.pairs = attended_pairs(model, strategy.cp, kind);
  const std::int64_t all_keys = model.sequence + model.cached_tokens;
  shapes.window = kind.windowed && model.window < all_keys ? model.window : 0;
  // Of the cache, a window leaves what the first new token sees.
  if (model.cached_tokens > 0 && shapes.window > 0) shapes.keys = std::min(all_keys, model.window + model.sequence - 1);
  if (model.head_dim == 0) share(model.hidden, model.heads, "hidden");
  shapes.head_dim = model.key_width();
  shapes.value_dim = model.value_width();
  shapes.heads = share(model.heads, strategy.tp, "heads");
  // Of fewer heads of keys than ranks each rank has one, which others have too (operators/key_heads.hpp).
  shapes.kv_heads = strategy.tp % model.kv() == 0 ? 1 : share(model.kv(), strategy.tp, "kv_heads");
  MANYWORLDS_CHECK(model.heads % model.kv() == 0, "{} heads over {} kv_heads", model.heads, model.kv());
}

void add_feed_forward_shapes(RankShapes& shapes, const Model& model, const Strategy& strategy) {
  shapes.ffn = share(model.ffn(), strategy.tp, "ffn_hidden");
}

void add_expert_shapes(RankShapes& shapes, const Model& model, const Strategy& strategy) {
  shapes.experts = share(model.experts, strategy.ep, "experts");
  shapes.expert_ffn = share(model.expert_ffn(), strategy.etp, "expert_ffn_hidden");
  if (model.shared_ffn_hidden > 0) shapes.shared_ffn = share(model.shared_ffn_hidden, strategy.tp, "shared_ffn_hidden");
}

RankShapes rank_shapes(const Model& model, const Strategy& strategy, LayerKind kind) {
  kind = inner_kind(model, kind);
  RankShapes shapes = stream_shapes(model.architecture ? model.architecture->stream_of(model, kind) : model, strategy);
  if (!model.architecture) {
    add_attention_shapes(shapes, model, strategy_of_part(strategy, data_part::attention), kind);
    add_feed_forward_shapes(shapes, model, strategy_of_part(strategy, data_part::feed_forward));
    if (kind.experts) add_expert_shapes(shapes, model, strategy);
  }
  shapes.vocabulary = padded_vocabulary(model, strategy.tp) / strategy.tp;
  return shapes;
}

}  // namespace manyworlds::core::workload
