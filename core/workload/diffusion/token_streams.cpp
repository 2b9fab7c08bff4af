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

RankShapes image_shapes(const TokenStreams& streams, const RankShapes& shapes) {
  return with_sequence(shapes, shapes.sequence - streams.text);
}

RankShapes text_shapes(const TokenStreams& streams, const RankShapes& shapes) {
  return with_sequence(shapes, streams.text);
}

}  // namespace manyworlds::core::workload
