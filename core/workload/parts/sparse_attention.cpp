// Latent attention to the keys that an index selects (DeepSeek-AI 2025, DeepSeek-V3.2, section 2.1), as Megatron-Core
// runs it: all heads attend to the narrow keys themselves, so that the matrices that would widen them are multiplied
// with queries and outputs instead. Every tensor-parallel rank computes the whole index for all tokens (Megatron-LM,
// core/transformer/experimental_attention_variant/dsa.py: parallel_mode "duplicated", inputs are gathered). The index
// learns from the distribution of attention alone: its inputs have no gradient from it. Context-parallel ranks gather
// the narrow keys and the index's keys of all tokens, keep them, and have the scores of their own queries with all of
// these, whatever cp_comm is (dsa.py @d98e8a6, which has cp_comm_type allgather alone).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/workload/model/token_trade.hpp"
#include "core/workload/operators/attention_core.hpp"
#include "core/workload/operators/context_exchange.hpp"
#include "core/workload/operators/part.hpp"
#include "core/workload/operators/selection_index.hpp"
#include "core/workload/parts/latent_attention.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;

struct SparseAttention {
  std::int64_t index_heads = 0;
  std::int64_t index_width = 128;
  std::int64_t index_keys = 2'048;
  bool own_index = true;
};

const OptionTable<SparseAttention>& sparse_attention_options() {
  static const OptionTable<SparseAttention> table{
      option("index_heads", &SparseAttention::index_heads, "heads of the index", {1, 100'000}),
      option("index_width", &SparseAttention::index_width, "width of a head of the index", {1, 65'536}),
      option("index_keys", &SparseAttention::index_keys, "keys that the index selects for a token", {1, 16'777'216},
             "tokens"),
      option("own_index", &SparseAttention::own_index, "false: attention is to the keys that a layer before selected"),
  };
  return table;
}

class SparseAttentionPart final : public LayerPart, public GathersTokens {
 public:
  explicit SparseAttentionPart(const SparseAttention& options) : options_(options) {}

  BranchNames branch_names() const override {
    return {"attention_norm", "attention_residual", recompute::layernorm, offload::attn_norm};
  }
  Modules data_part() const override { return data_part::attention; }

  std::string missing_size(const Model& model) const override {
    if (model.heads == 0) return "heads";
    if (!model.is_latent()) return "attention: latent";
    if (model.kv_rank == 0) return "kv_rank";
    return options_.own_index && options_.index_heads == 0 ? "index_heads" : "";
  }

  /// Those of latent attention; of the index, queries, keys with their norm, and a weight for each of its heads.
  PartParameters parameters(const Model& model) const override {
    PartParameters counts = latent_attention_parameters(model);
    if (options_.own_index)
      counts.replicated += query_inputs(model) * index_columns() +
                           model.hidden * (options_.index_width + options_.index_heads) + 2 * options_.index_width;
    return counts;
  }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override { return {{"heads", model.heads}}; }

  PartFormulas formulas(const Model& model) const override {
    const char* queries = model.query_rank > 0 ? "query_rank" : "hidden";
    const std::string projections = latent_matrices(model);
    const std::string index =
        fmt::format("{} * index_heads * index_width + hidden * (index_width + index_heads)", queries);
    const std::string selected =
        options_.index_keys < model.sequence ? "index_keys * (sequence - index_keys / 2)" : "pairs";
    PartFormulas all;
    all.parameters = projections + latent_norms(model);
    all.forward_flops =
        fmt::format("2 * sequence * ({}) + 2 * {} * heads * (2 * kv_rank + rotary_dim)", projections, selected);
    if (!options_.own_index) return all;
    all.parameters += " + " + index + " + 2 * index_width";
    all.forward_flops += fmt::format(
        " + 2 * sequence * ({}) + 2 * pairs * index_heads * index_width + 2 * {} * heads * (kv_rank + rotary_dim)",
        index, selected);
    return all;
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes shapes = core_shapes(on);
    add_latent_attention_input(operators, on.model, attention_shapes(on), on.dtype(), LatentKeys::shared);
    if (on.strategy.cp > 1) {
      operators.push_back(gather_columns("gather_keys", shapes, shapes.head_dim));
      operators.back().attention_core_bytes = 2 * keys_of_others(shapes) * shapes.head_dim;
      operators.back().in_modules = recompute::core_attn;
    }
    if (options_.own_index) add_index(operators, on, shapes);
    add_core(operators, on, shapes);
    operators.push_back(product_by_head(shapes, "value_up", shapes.value_dim, on.model.value_width()));
    operators.push_back(row_parallel(shapes, {"attention_output", shapes.heads * on.model.value_width(), shapes.hidden,
                                              on.model.biases, on.dtype()}));
    operators.back().offload_module = offload::attn_proj;
  }

  /// Scores of the index in fp32, of all pairs of a sample at a time.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    return options_.own_index ? 4 * on.shapes.sequence * on.shapes.keys : 0;
  }

 private:
  std::int64_t index_columns() const { return options_.index_heads * options_.index_width; }
  /// Returns the keys of a micro-batch that other context-parallel ranks have made.
  static std::int64_t keys_of_others(const RankShapes& shapes) { return shapes.samples * shapes.keys - shapes.tokens; }
  static std::int64_t query_inputs(const Model& model) {
    return model.query_rank > 0 ? model.query_rank : model.hidden;
  }

  static RankShapes attention_shapes(const PartOnRank& on) {
    RankShapes shapes = on.shapes;
    add_attention_shapes(shapes, on.model, on.strategy, {});
    return shapes;
  }

  /// The attention core: queries as wide as the narrow keys, which all heads share, as they do the narrow values. Ranks
  /// with pieces from both ends of a sample have the mean of the pairs, as those of a window.
  RankShapes core_shapes(const PartOnRank& on) const {
    RankShapes shapes = attention_shapes(on);
    const std::int64_t sequence = on.model.sequence, reach = std::min(options_.index_keys, sequence);
    shapes.pairs = reach * (2 * sequence - reach) / (2 * on.strategy.cp);
    shapes.window = options_.index_keys < sequence ? options_.index_keys : 0;
    shapes.kv_heads = 1;
    shapes.value_dim = on.model.kv_rank;
    shapes.head_dim = on.model.kv_rank + on.model.rotary_dim;
    shapes.stack.grouped_query_fusion = true;
    if (shapes.stack.attention == AttentionKernel::unfused) shapes.stack.attention = AttentionKernel::flash2;
    return shapes;
  }

  void add_core(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes) const {
    Strategy strategy = on.strategy;
    strategy.stack = shapes.stack;
    strategy.cp = 1;  // all keys are there
    for (Operator& each : attention_core(shapes, strategy, false)) {
      const std::int64_t values = 2 * shapes.tokens * shapes.value_dim;  // are part of the keys
      each.saved_bytes += 4 * shapes.tokens * options_.index_keys - values;
      each.module_output_bytes -= values;
      operators.push_back(std::move(each));
    }
  }

  void add_index(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes) const {
    operators.push_back(index_projections(on.model, shapes));
    // A norm of the keys, and rotations of keys and queries.
    operators.push_back(elementwise("index_rotary", shapes.tokens * (options_.index_heads + 1) * options_.index_width,
                                    4, 4, 2 * shapes.tokens * (options_.index_heads + 1) * options_.index_width));
    if (on.strategy.cp > 1) {
      operators.push_back(gather_columns("gather_index_keys", shapes, options_.index_width));
      operators.back().saved_bytes = 2 * keys_of_others(shapes) * options_.index_width;
    }
    operators.push_back(index_scores(index_on(shapes), shapes));
  }

  Operator index_projections(const Model& model, const RankShapes& shapes) const {
    Operator result;
    result.name = "index";
    const std::int64_t inputs = 2 * shapes.tokens * (model.hidden + (model.query_rank > 0 ? model.query_rank : 0));
    if (shapes.sequence_parallel) {
      block_on(result.forward, "index", Kind::all_gather, inputs);
      result.saved_bytes = inputs;  // otherwise the projections of attention have saved them
    }
    add_index_matrices(result, shapes,
                       {{"index_queries", query_inputs(model), index_columns()},
                        {"index_keys", model.hidden, options_.index_width},
                        {"index_weights", model.hidden, options_.index_heads}});
    return result;
  }

  SelectionIndex index_on(const RankShapes& shapes) const {
    return {options_.index_heads,
            options_.index_width,
            shapes.keys,
            std::min(options_.index_keys, shapes.keys),
            shapes.sequence * shapes.keys / 2,
            shapes.pairs};
  }

  SparseAttention options_;
};

}  // namespace

PartType sparse_attention_type() {
  return {"sparse_attention",
          "latent attention to the keys that an index selects",
          sparse_attention_options().infos(),
          make_part<SparseAttentionPart, sparse_attention_options>,
          {{"index_heads", std::int64_t{8}}, {"index_width", std::int64_t{32}}, {"index_keys", std::int64_t{128}}},
          {},
          {{"attention", "latent"},
           {"query_rank", std::int64_t{64}},
           {"kv_rank", std::int64_t{32}},
           {"rotary_dim", std::int64_t{16}}}};
}

}  // namespace manyworlds::core::workload
