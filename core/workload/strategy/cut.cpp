// What tensor, sequence and context parallelism leave of a model on one rank.
#include "core/workload/strategy/cut.hpp"

#include <algorithm>
#include <string_view>

#include "core/base/error.hpp"

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

std::int64_t layers_before_section(const Model& model, const Strategy& strategy, std::int64_t section) {
  const std::int64_t sections = strategy.sections().count();
  if (section == sections) return model.layers;
  if (!strategy.section_layers.empty()) {
    std::int64_t before = 0;
    for (std::int64_t i = 0; i < section; ++i) before += strategy.section_layers.at(static_cast<std::size_t>(i));
    return before;
  }
  if (strategy.split == Split::light_ends)
    return section == 0 ? 0 : section * share(model.layers + 2, sections, "layers + 2") - 1;
  if (strategy.split == Split::light_last) return section * ((model.layers + sections - 1) / sections);
  return std::min(section * share(model.layers + strategy.empty_layers, sections, "layers"), model.layers);
}

std::vector<LayerKind> chunk_layers(const Model& model, const Strategy& strategy, std::int64_t stage,
                                    std::int64_t chunk) {
  const std::int64_t section = strategy.sections().of(stage, chunk);
  const std::int64_t end = layers_before_section(model, strategy, section + 1);
  std::vector<LayerKind> kinds;
  for (std::int64_t layer = layers_before_section(model, strategy, section); layer < end; ++layer)
    kinds.push_back(model.layer_kind(layer));
  return kinds;
}

namespace {

/// A query sees the keys before it, at most `window` of them; about half of s x s without a window. Context-parallel
/// ranks hold pieces from both ends of a sample, so that each has its share of the pairs.
std::int64_t attended_pairs(const Model& model, std::int64_t cp, LayerKind kind) {
  const std::int64_t reach = kind.windowed ? std::min(model.window, model.sequence) : model.sequence;
  return reach * (2 * model.sequence - reach) / (2 * cp);
}

void cut_experts(Cut& rank, const Model& model, const Strategy& strategy) {
  rank.experts = share(model.experts, strategy.ep, "experts");
  rank.expert_ffn = share(model.expert_ffn(), strategy.etp, "expert_ffn_hidden");
  if (model.shared_ffn_hidden > 0) rank.shared_ffn = share(model.shared_ffn_hidden, strategy.tp, "shared_ffn_hidden");
}

}  // namespace

Cut cut(const Model& model, const Strategy& strategy, LayerKind kind) {
  Cut rank;
  rank.tensor = strategy.tp;
  rank.sequence_parallel = strategy.sequence_parallel && strategy.tp > 1;
  rank.overlap_tensor = strategy.stack.overlap_tensor && rank.sequence_parallel;
  rank.overlap_input_gradient = strategy.stack.overlap_input_gradient;
  rank.stack = strategy.stack;
  rank.samples = strategy.micro_batch;
  rank.sequence = share(model.sequence, strategy.cp, "sequence");
  rank.keys = model.sequence;
  rank.pairs = attended_pairs(model, strategy.cp, kind);
  rank.tokens = strategy.micro_batch * rank.sequence;
  const std::int64_t piece = share(rank.sequence, rank.sequence_parallel ? strategy.tp : 1, "sequence");
  rank.region_tokens = strategy.micro_batch * piece;
  if (rank.overlap_tensor && strategy.stack.tensor_chunks > 0) {
    rank.tensor_chunks = strategy.stack.tensor_chunks;
    share(rank.tokens, rank.tensor * rank.tensor_chunks, "tokens of a micro-batch");
  }
  rank.hidden = model.hidden;
  if (model.head_dim == 0) share(model.hidden, model.heads, "hidden");
  rank.head_dim = model.key_width();
  rank.value_dim = model.value_width();
  rank.heads = share(model.heads, strategy.tp, "heads");
  rank.kv_heads = share(model.kv(), strategy.tp, "kv_heads");
  MANYWORLDS_CHECK(model.heads % model.kv() == 0, "{} heads over {} kv_heads", model.heads, model.kv());
  rank.ffn = share(model.ffn(), strategy.tp, "ffn_hidden");
  if (kind.experts) cut_experts(rank, model, strategy);
  rank.vocabulary = padded_vocabulary(model, strategy.tp) / strategy.tp;
  return rank;
}

}  // namespace manyworlds::core::workload
