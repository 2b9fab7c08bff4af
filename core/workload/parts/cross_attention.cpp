// Cross-attention: queries of a residual stream read keys and values that are made of another network's output, as
// decoders of encoder-decoder models do (Vaswani et al. 2017, section 3.2.3; T5, Raffel et al. 2020). Context-parallel
// ranks divide the other network's tokens as they do their own, so that its keys and values pass between them like
// those of self-attention (Megatron-Bridge @067f987, diffusion/models/wan: the text of Wan is divided, and attention to
// it has the same cp_comm_type); or each of them has all, and none pass.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/workload/operators/attention_core.hpp"
#include "core/workload/operators/context_exchange.hpp"
#include "core/workload/operators/context_sizes.hpp"
#include "core/workload/operators/key_heads.hpp"
#include "core/workload/operators/part.hpp"
#include "core/workload/parts/attention.hpp"

namespace manyworlds::core::workload {
namespace {

struct CrossAttention {
  std::int64_t keys = 0;        // tokens of a sample that are read
  std::int64_t key_hidden = 0;  // width of their stream; 0: as that of the queries
  NormWeights norm_weights = NormWeights::head;
  bool whole = false;  // every context-parallel rank has all keys
};

const OptionTable<CrossAttention>& cross_attention_options() {
  static const OptionTable<CrossAttention> table{
      option("keys", &CrossAttention::keys, "tokens of a sample that are read, of another network", {1, 16'777'216},
             "tokens"),
      option("key_hidden", &CrossAttention::key_hidden, "width of their stream; 0: as that of the queries",
             {0, 1'000'000}),
      choice("norm_weights", &CrossAttention::norm_weights, {"head", "all_heads"},
             "weights of query_key_norm: of one head, the same for all, or of all heads"),
      option("whole", &CrossAttention::whole,
             "every context-parallel rank has all that is read, as a text of few tokens"),
  };
  return table;
}

class CrossAttentionPart final : public LayerPart, public DividesInContext {
 public:
  explicit CrossAttentionPart(const CrossAttention& options) : options_(options) {}

  BranchNames branch_names() const override {
    return {"cross_attention_norm", "cross_attention_residual", recompute::layernorm, offload::attn_norm};
  }

  std::string missing_size(const Model& model) const override {
    return model.heads == 0 ? "heads" : options_.keys == 0 ? "keys" : "";
  }

  PartParameters parameters(const Model& model) const override {
    const std::int64_t query = model.heads * model.head_width(), key = model.kv() * model.head_width();
    return {2 * model.hidden * query + key_hidden(model) * 2 * key + (model.biases ? query + 2 * key : 0),
            (model.biases ? model.hidden : 0) + (!model.query_key_norm ? 0
                                                 : of_heads()          ? query + key
                                                                       : 2 * model.head_width())};
  }

  std::string undivided_in_context(const Model& model, const Strategy& strategy) const override {
    if (options_.whole) return "";
    const std::string keys = undivided_tokens("keys", options_.keys, strategy);
    return keys.empty() ? undivided_heads(model, strategy) : keys;
  }
  bool reads_other_network() const override { return true; }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override {
    return {{"heads", model.heads}, heads_of_keys(model)};
  }

  PartFormulas formulas(const Model& model) const override {
    const char* width = options_.key_hidden > 0 ? "key_hidden" : "hidden";
    return {
        fmt::format("2 * hidden * heads * head_dim + 2 * {} * kv_heads * head_dim{}{}", width,
                    model.biases ? " + (heads + 2 * kv_heads) * head_dim + hidden" : "",
                    !model.query_key_norm ? ""
                    : of_heads()          ? " + (heads + kv_heads) * head_dim"
                                          : " + 2 * head_dim"),
        "",
        fmt::format("4 * sequence * hidden * heads * head_dim + 4 * keys * {} * kv_heads * head_dim + 4 * sequence * "
                    "keys * heads * head_dim",
                    width)};
  }

  /// The other network's output is saved where it is made, and not for each layer that reads it.
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on), of_keys = shapes_of_keys(on, shapes);
    const bool biases = on.model.biases;
    operators.push_back(
        column_parallel(shapes, {"cross_query", shapes.hidden, shapes.query_width(), biases, on.dtype()}));
    mark_input_from(operators.back(), recompute::layernorm);
    operators.push_back(
        column_parallel(of_keys, {"cross_key_value", key_hidden(on.model),
                                  shapes.kv_heads * (shapes.head_dim + shapes.value_dim), biases, on.dtype()}));
    operators.back().saved_bytes = 0;
    const std::int64_t read = of_keys.sp_region_tokens * key_hidden(on.model);
    operators.back().backward.push_back(kernel(compute::memory_bound("key_gradient_sum", 6 * read)));
    if (on.model.query_key_norm)
      operators.push_back(norm("query_key_norm", on.model, shapes,
                               shapes.tokens * shapes.heads + of_keys.tokens * shapes.kv_heads, shapes.head_dim));
    std::vector<Operator> core = attention_core(shapes, exchange_of_keys(on), on.model.dropout);
    hold_other_keys(core, shapes, of_keys.tokens);
    for (Operator& each : core) operators.push_back(std::move(each));
    operators.push_back(
        row_parallel(shapes, {"cross_output", shapes.value_width(), shapes.hidden, biases, on.dtype()}));
    operators.back().offload_module = offload::attn_proj;
  }

  /// Scores before and after the softmax, if attention is not fused, or keys and values gathered from all ranks.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on);
    return std::max(score_working_bytes(shapes), gathered_bytes(exchange_of_keys(on), shapes));
  }
  std::int64_t shared_buffer_bytes(const PartOnRank& on) const override { return score_bytes(shapes_of(on)); }

 private:
  std::int64_t key_hidden(const Model& model) const {
    return options_.key_hidden > 0 ? options_.key_hidden : model.hidden;
  }

  /// Returns the strategy as the attention core sees it: where every rank has all keys, none pass between them.
  Strategy exchange_of_keys(const PartOnRank& on) const {
    Strategy result = on.strategy;
    if (options_.whole) result.cp = 1;
    return result;
  }

  bool of_heads() const { return options_.norm_weights == NormWeights::all_heads; }

  RankShapes shapes_of(const PartOnRank& on) const {
    RankShapes shapes = on.shapes;
    add_attention_shapes(shapes, on.model, on.strategy, {});
    shapes.keys = options_.keys, shapes.window = 0, shapes.cut_by_mask = false;
    shapes.pairs = shapes.sequence * shapes.keys;
    return shapes;
  }

  RankShapes shapes_of_keys(const PartOnRank& on, const RankShapes& shapes) const {
    RankShapes result = shapes;
    result.sequence = options_.keys / exchange_of_keys(on).cp;
    result.tokens = shapes.samples * result.sequence;
    result.sp_region_tokens = result.tokens / (shapes.sequence_parallel ? shapes.tensor_parallel : 1);
    return result;
  }

  CrossAttention options_;
};

}  // namespace

PartType cross_attention_type() {
  return {"cross_attention",
          "attention to the output of another network",
          cross_attention_options().infos(),
          make_part<CrossAttentionPart, cross_attention_options>,
          {{"keys", std::int64_t{256}}}};
}

}  // namespace manyworlds::core::workload
