// Attention with relative positions as Conformers have it (Dai et al. 2019, "Transformer-XL", section 3.3; Gulati et
// al. 2020, section 2.1): queries are multiplied with keys, and with a projection of the 2 s - 1 distances of s tokens,
// each with a bias of the head. Kernels are those of NeMo (collections/asr/parts/submodules/multi_head_attention.py,
// class RelPositionMultiHeadAttention). Tensor parallelism shards heads.
#include <fmt/format.h>

#include <utility>

#include "core/workload/operators/attention_core.hpp"
#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {
namespace {

class RelativeAttention final : public LayerPart {
 public:
  BranchNames branch_names() const override {
    return {"attention_norm", "attention_residual", recompute::layernorm, offload::attn_norm};
  }
  std::string missing_size(const Model& model) const override { return model.heads == 0 ? "heads" : ""; }

  PartParameters parameters(const Model& model) const override {
    const std::int64_t width = model.heads * model.head_width();
    return {5 * model.hidden * width + 2 * width + (model.biases ? 3 * width : 0), model.biases ? model.hidden : 0};
  }

  bool shares_context() const override { return false; }  // every token needs its distance to all others
  std::vector<ShardedSize> sharded_sizes(const Model& model) const override { return {{"heads", model.heads}}; }

  PartFormulas formulas(const Model& model) const override {
    return {fmt::format("5 * hidden * heads * head_dim + {} * heads * head_dim{}", model.biases ? 5 : 2,
                        model.biases ? " + hidden" : ""),
            "",
            "2 * (4 * sequence + 2 * sequence - 1) * hidden * heads * head_dim + (4 * sequence + 2 * (2 * sequence - "
            "1)) * sequence * heads * head_dim"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on);
    Linear qkv{"qkv", shapes.hidden, shapes.qkv_width(), on.model.biases, on.dtype()};
    if (!shapes.stack.projection_fusion) qkv.parts = {shapes.query_width(), shapes.query_width(), shapes.query_width()};
    operators.push_back(column_parallel(shapes, qkv));
    mark_input_from(operators.back(), recompute::layernorm);
    operators.back().offload_module = offload::qkv_linear;
    operators.push_back(position_projection(shapes));
    operators.push_back(position_scores(shapes));
    for (Operator& each : attention_core(shapes, on.strategy, on.model.dropout)) operators.push_back(std::move(each));
    operators.push_back(
        row_parallel(shapes, {"attention_output", shapes.value_width(), shapes.hidden, on.model.biases, on.dtype()}));
    operators.back().offload_module = offload::attn_proj;
  }

  /// Scores of positions and their gradient; without fusion those of keys besides.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on);
    return 2 * 2 * shapes.samples * shapes.heads * shapes.sequence * distances(shapes) + 2 * score_bytes(shapes);
  }
  std::int64_t shared_buffer_bytes(const PartOnRank& on) const override { return score_bytes(shapes_of(on)); }

 private:
  static std::int64_t distances(const RankShapes& shapes) { return 2 * shapes.sequence - 1; }

  static RankShapes shapes_of(const PartOnRank& on) {
    RankShapes shapes = on.shapes;
    add_attention_shapes(shapes, on.model, on.strategy, {});
    shapes.kv_heads = shapes.heads;
    shapes.pairs = shapes.sequence * shapes.keys, shapes.cut_by_mask = false;
    return shapes;
  }

  /// The same for all samples. Sines of distances are one tensor for all layers, and need no gradient.
  static Operator position_projection(const RankShapes& shapes) {
    const std::int64_t rows = distances(shapes), width = shapes.query_width();
    Operator result;
    result.name = "position_projection";
    result.weight_gradient_input_bytes = 2 * rows * (shapes.hidden + width);
    result.forward.push_back(kernel(compute::gemm(result.name, rows, width, shapes.hidden)));
    add_weight_gradient(result.backward, shapes, compute::weight_gradient(result.name, width, shapes.hidden, rows));
    return result;
  }

  /// Two biases are added to queries (4 bytes an element each); scores of a query and all distances are shifted, so
  /// that those of its keys stand in a row (read and written), and added to those of the keys, which reads them. The
  /// backward pass writes their gradient, shifts it, multiplies it and adds up gradients of queries (6) and, over the
  /// samples, of the projection. Saved are queries with the bias, and the shifted scores if attention adds them inside.
  static Operator position_scores(const RankShapes& shapes) {
    const std::int64_t s = shapes.sequence, n = distances(shapes), d = shapes.head_dim;
    const std::int64_t batch = shapes.samples * shapes.heads, queries = batch * s * d, scores = batch * s * n;
    const std::int64_t kept = batch * s * shapes.keys;
    const bool fused = shapes.stack.attention != AttentionKernel::unfused;
    Operator result;
    result.name = "position_scores";
    result.in_modules = recompute::core_attn;
    result.offload_module = offload::core_attn;
    result.saved_bytes = 2 * queries + 2 * n * shapes.query_width();
    result.attention_core_bytes = fused ? 2 * kept : 0;
    result.forward.push_back(kernel(compute::memory_bound("position_bias", 2 * 4 * queries)));
    result.forward.push_back(kernel(compute::batched_gemm(result.name, s, n, d, batch)));
    result.forward.push_back(kernel(compute::memory_bound("shift_scores", 4 * scores)));
    result.forward.push_back(kernel(compute::memory_bound("add_scores", (fused ? 2 : 6) * kept)));
    result.backward.push_back(kernel(compute::memory_bound("score_gradient", 2 * kept + 4 * scores)));
    result.backward.push_back(kernel(compute::batched_gemm("position_query_gradient", s, d, n, batch)));
    result.backward.push_back(kernel(compute::batched_gemm("position_gradient", n, d, s, batch)));
    result.backward.push_back(kernel(compute::memory_bound("query_gradient_sum", 6 * queries)));
    result.backward.push_back(
        kernel(compute::memory_bound("position_gradient_sum", 2 * (shapes.samples + 1) * n * shapes.query_width())));
    return result;
  }
};

}  // namespace

PartType relative_attention_type() {
  return {"relative_attention",
          "attention of all tokens to all, with relative positions (Conformer)",
          {},
          make_part<RelativeAttention>,
          {}};
}

}  // namespace manyworlds::core::workload
