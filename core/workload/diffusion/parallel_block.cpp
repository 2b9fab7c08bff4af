// Attention and a feed-forward network side by side, from one norm and into one sum, for all tokens of image and text
// (Flux's single-stream blocks, after Dehghani et al. 2023, "Scaling Vision Transformers to 22 Billion Parameters",
// section 2.1). Either one matrix brings in both and one takes both out (Black Forest Labs, flux/modules/layers.py,
// class SingleStreamBlock), or each has its own (NeMo, collections/diffusion/models/dit/dit_layer_spec.py, class
// FluxSingleTransformerBlock). Tensor parallelism shards heads and width.
#include <fmt/format.h>

#include <utility>

#include "core/workload/diffusion/token_streams.hpp"
#include "core/workload/operators/attention_core.hpp"
#include "core/workload/operators/context_exchange.hpp"
#include "core/workload/operators/feed_forward_network.hpp"
#include "core/workload/operators/key_heads.hpp"
#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::memory_bound;

struct ParallelBlock {
  bool joined = true;  // both share a matrix at the entrance and one at the exit
};

const OptionTable<ParallelBlock>& parallel_block_options() {
  static const OptionTable<ParallelBlock> table{
      option("joined", &ParallelBlock::joined, "both share a matrix at the entrance and one at the exit"),
  };
  return table;
}

class ParallelBlockPart final : public LayerPart {
 public:
  explicit ParallelBlockPart(const ParallelBlock& options) : options_(options) {}

  BranchNames branch_names() const override {
    return {"block_norm", "block_residual", recompute::layernorm, offload::attn_norm};
  }
  std::string missing_size(const Model& model) const override { return model.heads == 0 ? "heads" : ""; }

  PartParameters parameters(const Model& model) const override {
    const std::int64_t query = model.heads * model.head_width(), key = model.kv() * model.head_width(),
                       in = query + 2 * key + model.up_width(model.ffn());
    return {model.hidden * (in + query + model.ffn()) + (model.biases ? in : 0),
            (model.biases ? model.hidden : 0) + (model.query_key_norm ? 2 * model.head_width() : 0)};
  }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override {
    return {{"heads", model.heads}, heads_of_keys(model), {"ffn_hidden", model.ffn()}};
  }

  PartFormulas formulas(const Model& model) const override {
    const char* up = model.is_gated() ? "2 * ffn_hidden" : "ffn_hidden";
    const std::string matrices = fmt::format("hidden * ((2 * heads + 2 * kv_heads) * head_dim + {} + ffn_hidden)", up);
    return {matrices + (model.biases ? fmt::format(" + (heads + 2 * kv_heads) * head_dim + {} + hidden", up) : "") +
                (model.query_key_norm ? " + 2 * head_dim" : ""),
            "", "2 * sequence * " + matrices + " + 4 * sequence * sequence * heads * head_dim"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on);
    const std::int64_t up = on.model.up_width(shapes.ffn), rows = shapes.tokens * (shapes.heads + shapes.kv_heads);
    Linear in{"qkv", shapes.hidden, shapes.qkv_width() + (options_.joined ? up : 0), on.model.biases, on.dtype()};
    if (!shapes.stack.projection_fusion) {
      in.parts = {shapes.query_width(), shapes.kv_heads * shapes.head_dim, shapes.kv_heads * shapes.value_dim};
      if (options_.joined) in.parts.push_back(up);
    }
    operators.push_back(column_parallel(shapes, in));
    mark_input_from(operators.back(), recompute::layernorm);
    operators.back().offload_module = offload::qkv_linear;
    operators.push_back(split_projections(on.model, shapes, true));
    if (on.model.query_key_norm) operators.push_back(query_key_norm(shapes));
    if (on.model.position == Position::rotary) operators.push_back(rotary(shapes, rows * shapes.head_dim));
    for (Operator& each : attention_core(shapes, on.strategy, on.model.dropout)) operators.push_back(std::move(each));
    options_.joined ? add_joined_exit(operators, on, shapes) : add_own_exits(operators, on, shapes);
  }

  /// Gradients of queries, keys and values and before and after the activation function, and scores before and after
  /// the softmax if attention is not fused; keys and values gathered from all ranks, too.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on);
    return 2 * shapes.tokens * (shapes.qkv_width() + on.model.up_width(shapes.ffn)) + score_working_bytes(shapes) +
           gathered_bytes(on.strategy, shapes);
  }
  std::int64_t shared_buffer_bytes(const PartOnRank& on) const override { return score_bytes(shapes_of(on)); }

 private:
  static RankShapes shapes_of(const PartOnRank& on) {
    RankShapes shapes = on.shapes;
    add_attention_shapes(shapes, on.model, on.strategy, {});
    add_feed_forward_shapes(shapes, on.model, on.strategy);
    shapes.pairs = shapes.sequence * shapes.keys, shapes.cut_by_mask = false;
    return shapes;
  }

  /// Outputs of both are copied side by side; the attention's own is saved for its backward pass, as is the copy, and
  /// its gradient is copied out.
  void add_joined_exit(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes) const {
    const std::int64_t attention = shapes.tokens * shapes.value_width(), mlp = shapes.tokens * shapes.ffn;
    operators.push_back(activation(on.model, shapes, mlp));
    Operator join;
    join.name = "join_outputs";
    join.saved_bytes = 2 * attention;
    join.forward.push_back(kernel(memory_bound(join.name, 4 * (attention + mlp))));
    join.backward.push_back(kernel(memory_bound(join.name, 4 * attention)));
    operators.push_back(std::move(join));
    operators.push_back(row_parallel(
        shapes, {"block_output", shapes.value_width() + shapes.ffn, shapes.hidden, on.model.biases, on.dtype()}));
  }

  /// The feed-forward network reads the input of queries, keys and values, whose two gradients are added, as both
  /// outputs are. In 16 bits that input is saved once; below, each matrix saves its own.
  void add_own_exits(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes) const {
    const std::int64_t elements = shapes.sp_region_tokens * shapes.hidden;
    operators.push_back(
        row_parallel(shapes, {"attention_output", shapes.value_width(), shapes.hidden, false, on.dtype()}));
    operators.back().offload_module = offload::attn_proj;
    const std::size_t up = operators.size();
    add_feed_forward_network(operators, on.model, shapes, on.dtype(), {"mlp_up", "mlp_down", shapes.hidden});
    operators[up].input_from = recompute::layernorm;
    if (on.dtype() == compute::Dtype::bf16) operators[up].saved_bytes = operators[up].module_output_bytes = 0;
    operators.push_back(elementwise("sum_outputs", elements, 6, 6, 0));
  }

  ParallelBlock options_;
};

}  // namespace

PartType parallel_block_type() {
  return {"parallel_block",
          "attention and a feed-forward network side by side (Flux)",
          parallel_block_options().infos(),
          make_part<ParallelBlockPart, parallel_block_options>,
          {}};
}

}  // namespace manyworlds::core::workload
