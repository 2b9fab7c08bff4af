#include "core/workload/diffusion/token_streams.hpp"

namespace manyworlds::core::workload {
namespace {

RankShapes with_sequence(RankShapes shapes, std::int64_t sequence) {
  shapes.sequence = sequence;
  shapes.tokens = shapes.samples * sequence;
  shapes.sp_region_tokens = shapes.tokens / (shapes.sequence_parallel ? shapes.tensor_parallel : 1);
  return shapes;
}

}  // namespace

const OptionTable<TokenStreams>& token_stream_options() {
  static const OptionTable<TokenStreams> table{
      option("text", &TokenStreams::text, "tokens of a sample that are text; the others are the image's",
             {1, 16'777'216}, "tokens"),
  };
  return table;
}

std::string missing_stream_size(const TokenStreams& streams, const Model& model) {
  if (streams.text == 0) return "text";
  return streams.text < model.sequence ? "" : "sequence > text";
}

RankShapes image_shapes(const TokenStreams& streams, const PartOnRank& on, const RankShapes& shapes) {
  return with_sequence(shapes, shapes.sequence - streams.text / on.strategy.cp);
}

RankShapes text_shapes(const TokenStreams& streams, const PartOnRank& on, const RankShapes& shapes) {
  return with_sequence(shapes, streams.text / on.strategy.cp);
}

Operator split_projections(const Model& model, const RankShapes& shapes, bool with_values) {
  const bool rotary = model.position == Position::rotary;
  const std::int64_t all = shapes.tokens * shapes.qkv_width(),
                     values = shapes.tokens * shapes.kv_heads * shapes.value_dim;
  const std::int64_t copied =
      (model.query_key_norm ? all - values : 0) + (with_values && (model.query_key_norm || rotary) ? values : 0);
  Operator result;
  result.name = "split_projections";
  if (copied > 0) result.forward.push_back(kernel(compute::memory_bound(result.name, 4 * copied)));
  if (model.query_key_norm || rotary) result.backward.push_back(kernel(compute::memory_bound(result.name, 4 * all)));
  return result;
}

Operator query_key_norm(const RankShapes& shapes) {
  Model of_heads;
  of_heads.norm = Norm::rms_norm;
  return norm("query_key_norm", of_heads, shapes, shapes.tokens * (shapes.heads + shapes.kv_heads), shapes.head_dim);
}

}  // namespace manyworlds::core::workload
