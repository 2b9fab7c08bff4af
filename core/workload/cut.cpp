// What tensor and sequence parallelism leave of a model on one rank.
#include "core/workload/cut.hpp"

#include <string_view>

#include "core/error.hpp"

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

std::int64_t layers_per_chunk(const Model& model, const Strategy& strategy) {
  return share(model.layers, strategy.pp * strategy.virtual_stages, "layers");
}

Cut cut(const Model& model, const Strategy& strategy) {
  Cut rank;
  rank.tensor = strategy.tp;
  rank.sequence_parallel = strategy.sequence_parallel && strategy.tp > 1;
  rank.samples = strategy.micro_batch;
  rank.sequence = model.sequence;
  rank.tokens = strategy.micro_batch * model.sequence;
  const std::int64_t piece = share(model.sequence, rank.sequence_parallel ? strategy.tp : 1, "sequence");
  rank.region_tokens = strategy.micro_batch * piece;
  rank.hidden = model.hidden;
  rank.head_dim = model.head_dim > 0 ? model.head_dim : share(model.hidden, model.heads, "hidden");
  rank.heads = share(model.heads, strategy.tp, "heads");
  rank.kv_heads = share(model.kv(), strategy.tp, "kv_heads");
  MANYWORLDS_CHECK(model.heads % model.kv() == 0, "{} heads over {} kv_heads", model.heads, model.kv());
  rank.ffn = share(model.ffn(), strategy.tp, "ffn_hidden");
  rank.vocabulary = padded_vocabulary(model, strategy.tp) / strategy.tp;
  return rank;
}

}  // namespace manyworlds::core::workload
