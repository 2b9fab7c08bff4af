// Joint attention of image and text tokens (MMDiT; Esser et al. 2024, "Scaling Rectified Flow Transformers for
// High-Resolution Image Synthesis", section 4): queries, keys, values and outputs of both have weights of their own,
// and every token sees all tokens. Kernels are those of NeMo (collections/diffusion/models/dit/dit_attention.py, class
// JointSelfAttention). Tensor parallelism shards heads. Context parallelism divides the tokens of both streams, and
// exchanges those of both at once, as any attention does (Hugging Face diffusers, models/transformers/
// transformer_flux.py, _cp_plan, and models/attention_dispatch.py, which have a ring and Ulysses; NeMo and
// Megatron-Bridge do not divide Flux's tokens).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/workload/diffusion/token_streams.hpp"
#include "core/workload/operators/attention_core.hpp"
#include "core/workload/operators/context_exchange.hpp"
#include "core/workload/operators/context_sizes.hpp"
#include "core/workload/operators/key_heads.hpp"

namespace manyworlds::core::workload {
namespace {

class JointAttention final : public LayerPart, public DividesInContext {
 public:
  explicit JointAttention(const TokenStreams& streams) : streams_(streams) {}

  BranchNames branch_names() const override {
    return {"attention_norm", "attention_residual", recompute::layernorm, offload::attn_norm};
  }
  std::string missing_size(const Model& model) const override {
    return model.heads == 0 ? "heads" : missing_stream_size(streams_, model);
  }

  PartParameters parameters(const Model& model) const override {
    const std::int64_t query = model.heads * model.head_width(), key = model.kv() * model.head_width();
    return {2 * (model.hidden * (2 * query + 2 * key) + (model.biases ? query + 2 * key : 0)),
            2 * ((model.biases ? model.hidden : 0) + (model.query_key_norm ? 2 * model.head_width() : 0))};
  }

  std::string undivided_in_context(const Model& model, const Strategy& strategy) const override {
    const std::string text = undivided_tokens("text", streams_.text, strategy);
    return text.empty() ? undivided_heads(model, strategy) : text;
  }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override {
    return {{"heads", model.heads}, heads_of_keys(model), {"text", streams_.text}};
  }

  PartFormulas formulas(const Model& model) const override {
    const std::string matrices = "hidden * (2 * heads + 2 * kv_heads) * head_dim";
    return {fmt::format("2 * ({}{}{})", matrices, model.biases ? " + (heads + 2 * kv_heads) * head_dim + hidden" : "",
                        model.query_key_norm ? " + 2 * head_dim" : ""),
            "", "2 * sequence * " + matrices + " + 4 * sequence * sequence * heads * head_dim"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on), image = image_shapes(streams_, on, shapes),
                     text = text_shapes(streams_, on, shapes);
    add_input(operators, on, image, "qkv");
    add_input(operators, on, text, "text_qkv");
    const std::int64_t rows = shapes.tokens * (shapes.heads + shapes.kv_heads);
    operators.push_back(split_projections(on.model, shapes, false));
    if (on.model.query_key_norm) operators.push_back(query_key_norm(shapes));
    operators.push_back(elementwise("join_streams", shapes.tokens * shapes.qkv_width(), 4, 0, 0));
    if (on.model.position == Position::rotary) operators.push_back(rotary(shapes, rows * shapes.head_dim));
    for (Operator& each : attention_core(shapes, on.strategy, on.model.dropout)) operators.push_back(std::move(each));
    // Both streams read a slice, whose gradient PyTorch copies into a tensor of zeros (of both tensors 4 bytes an
    // element, and 4 for the copies); these are added (6).
    operators.push_back(elementwise("split_streams", shapes.tokens * shapes.value_width(), 0, 14, 0));
    add_output(operators, on, image, "attention_output");
    add_output(operators, on, text, "text_output");
  }

  /// Scores before and after the softmax, if attention is not fused, or keys and values gathered from all ranks.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on);
    return std::max(score_working_bytes(shapes), gathered_bytes(on.strategy, shapes));
  }
  std::int64_t shared_buffer_bytes(const PartOnRank& on) const override { return score_bytes(shapes_of(on)); }

 private:
  static RankShapes shapes_of(const PartOnRank& on) {
    RankShapes shapes = on.shapes;
    add_attention_shapes(shapes, on.model, on.strategy, {});
    shapes.pairs = shapes.sequence * shapes.keys, shapes.cut_by_mask = false;
    return shapes;
  }

  static void add_input(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes,
                        std::string_view name) {
    Linear qkv{name, shapes.hidden, shapes.qkv_width(), on.model.biases, on.dtype()};
    if (!shapes.stack.projection_fusion)
      qkv.parts = {shapes.query_width(), shapes.kv_heads * shapes.head_dim, shapes.kv_heads * shapes.value_dim};
    operators.push_back(column_parallel(shapes, qkv));
    mark_input_from(operators.back(), recompute::layernorm);
    operators.back().offload_module = offload::qkv_linear;
  }

  static void add_output(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes,
                         std::string_view name) {
    operators.push_back(row_parallel(shapes, {name, shapes.value_width(), shapes.hidden, on.model.biases, on.dtype()}));
    operators.back().offload_module = offload::attn_proj;
  }

  TokenStreams streams_;
};

}  // namespace

PartType joint_attention_type() {
  return {"joint_attention",
          "attention of image and text tokens to all of both, with weights for each (MMDiT, Flux)",
          token_stream_options().infos(),
          make_part<JointAttention, token_stream_options>,
          {{"text", std::int64_t{128}}}};
}

}  // namespace manyworlds::core::workload
