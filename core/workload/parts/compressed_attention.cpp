// Attention to the tokens of a window and to entries that tokens before it are compressed to (DeepSeek-AI 2026,
// DeepSeek-V4, section 2.3): one key, which is its value too, for all heads, sinks, and an output of two matrices, the
// first by groups of heads. Every `ratio` tokens give an entry, a mean of projections by a softmax of others, of these
// tokens or, with two series, also of those before; all entries are read, or those that an index selects. Weights and
// operators are those of transformers, models/deepseek_v4/modeling_deepseek_v4.py @0197608; the index learns as that of
// sparse attention (Megatron-LM, experimental_attention_variant/csa.py @00bebb4, FusedDSAIndexerLoss). Megatron-LM has
// it for tp 1 alone (deepseek_v4_hybrid_attention.py @009276b).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/workload/operators/attention_core.hpp"
#include "core/workload/operators/part.hpp"
#include "core/workload/operators/selection_index.hpp"
#include "core/workload/parts/latent_attention.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::gemm;
using compute::memory_bound;

struct CompressedAttention {
  std::int64_t query_width = 0;
  std::int64_t rotary_width = 64;
  std::int64_t window_keys = 128;
  std::int64_t ratio = 0;
  std::int64_t series = 1;
  std::int64_t output_groups = 1;
  std::int64_t output_width = 0;
  std::int64_t index_heads = 0;
  std::int64_t index_width = 128;
  std::int64_t index_keys = 512;

  bool has_index() const { return ratio > 0 && index_heads > 0; }
};

const OptionTable<CompressedAttention>& compressed_attention_options() {
  using Options = CompressedAttention;
  static const OptionTable<Options> table{
      option("query_width", &Options::query_width, "width of the compressed query", {1, 1'000'000}),
      option("rotary_width", &Options::rotary_width, "rotated numbers of a head", {0, 65'536}),
      option("window_keys", &Options::window_keys, "tokens that a token sees uncompressed, itself included",
             {1, 16'777'216}, "tokens"),
      option("ratio", &Options::ratio, "tokens of a compressed entry; 0: there are none", {0, 1'000'000}, "tokens"),
      option("series", &Options::series, "projections of a token: 2 if entries overlap", {1, 2}),
      option("output_groups", &Options::output_groups, "groups of heads, each with an output matrix", {1, 100'000}),
      option("output_width", &Options::output_width, "width of the output of a group", {1, 1'000'000}),
      option("index_heads", &Options::index_heads, "heads of an index that selects entries; 0: all are read",
             {0, 100'000}),
      option("index_width", &Options::index_width, "width of a head of the index", {1, 65'536}),
      option("index_keys", &Options::index_keys, "entries that the index selects for a token", {1, 16'777'216}),
  };
  return table;
}

/// Pairs of one head and sample: with tokens of the window, with all entries before, and with those that are read. As
/// of causal attention a token has half a pair less than it sees.
struct Pairs {
  std::int64_t window = 0, before = 0, read = 0;

  Pairs(const CompressedAttention& options, std::int64_t sequence) {
    const std::int64_t reach = std::min(options.window_keys, sequence);
    window = reach * (2 * sequence - reach) / 2;
    if (options.ratio == 0) return;
    before = read = sequence * sequence / (2 * options.ratio);
    if (options.has_index() && options.index_keys * options.ratio < sequence)
      read = options.index_keys * (2 * sequence - options.index_keys * options.ratio) / 2;
  }
};

class CompressedAttentionPart final : public LayerPart {
 public:
  explicit CompressedAttentionPart(const CompressedAttention& options) : options_(options) {}

  BranchNames branch_names() const override {
    return {"attention_norm", "attention_residual", recompute::layernorm, offload::attn_norm};
  }

  std::string missing_size(const Model& model) const override {
    if (model.heads == 0) return "heads";
    if (options_.query_width == 0) return "query_width";
    if (options_.output_width == 0) return "output_width";
    if (model.heads % options_.output_groups != 0) return "output_groups that divide heads";
    return options_.ratio > model.sequence ? "a sequence of at least ratio tokens" : "";
  }

  PartParameters parameters(const Model& model) const override {
    const CompressedAttention& o = options_;
    const std::int64_t head = model.head_width(), all = model.heads * head;
    std::int64_t count = model.hidden * (o.query_width + head) + o.query_width * all + all * o.output_width +
                         o.output_groups * o.output_width * model.hidden + o.query_width + head + model.heads;
    if (o.ratio > 0) count += compressor_parameters(model, head);
    if (o.has_index())
      count +=
          o.query_width * index_columns() + model.hidden * o.index_heads + compressor_parameters(model, o.index_width);
    return {0, count};
  }

  bool shares_context() const override { return false; }  // entries and their scores are not exchanged

  /// The only published implementation for training has no tensor parallelism.
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {{"tensor-parallel shares", 1}}; }

  PartFormulas formulas(const Model& model) const override {
    const Pairs pairs(options_, model.sequence);
    const std::string window = options_.window_keys < model.sequence ? "window_keys * (sequence - window_keys / 2)"
                                                                     : "sequence * sequence / 2";
    const std::string before = "sequence * sequence / 2 / ratio",
                      read = pairs.read < pairs.before ? "index_keys * (sequence - index_keys * ratio / 2)" : before;
    const std::string compressor = "2 * series * hidden * head_dim",
                      index =
                          "query_width * index_heads * index_width + hidden * index_heads + 2 * series * hidden * "
                          "index_width";
    std::string matrices =
                    "hidden * (query_width + head_dim) + query_width * heads * head_dim + heads * head_dim * "
                    "output_width + output_groups * output_width * hidden",
                vectors = " + query_width + head_dim + heads", scores;
    if (options_.ratio > 0) {
      matrices += " + " + compressor;
      vectors += " + (ratio * series + 1) * head_dim";
    }
    if (options_.has_index()) {
      matrices += " + " + index;
      vectors += " + (ratio * series + 1) * index_width";
      scores = fmt::format(" + 2 * {} * index_heads * index_width + 2 * {} * heads * head_dim", before, read);
    }
    return {matrices + vectors, "",
            fmt::format("2 * sequence * ({}) + 4 * heads * head_dim * ({}{}){}", matrices, window,
                        options_.ratio > 0 ? " + " + read : "", scores)};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes shapes = core_shapes(on);
    const std::int64_t head = on.model.head_width(), all = on.model.heads * head;
    const std::int64_t tokens = shapes.sp_region_tokens;
    const std::size_t first = operators.size();
    operators.push_back(
        replicated_linear(shapes, {"query_down", shapes.hidden, options_.query_width, false, on.dtype()}));
    operators.push_back(norm("query_norm", on.model, shapes, tokens, options_.query_width));
    operators.push_back(replicated_linear(shapes, {"query_up", options_.query_width, all, false, on.dtype()}));
    operators.push_back(norm("query_head_norm", on.model, shapes, tokens * on.model.heads, head));
    operators.push_back(replicated_linear(shapes, {"key_value", shapes.hidden, head, false, on.dtype()}));
    operators.push_back(norm("key_value_norm", on.model, shapes, tokens, head));
    operators[first + 4].saved_bytes = 0;  // its input is saved for the queries
    for (const std::size_t reader : {first, first + 4}) mark_input_from(operators[reader], recompute::layernorm);
    if (options_.ratio > 0) add_compressor(operators, on.model, shapes, head, false);
    // Of queries, of keys and, backwards, of what attention returns, since values are keys.
    operators.push_back(rotary(shapes, (tokens * (2 * on.model.heads + 1) + entries(shapes)) * options_.rotary_width));
    if (options_.has_index()) add_index(operators, on.model, shapes);
    add_core(operators, on, shapes);
    RankShapes groups = shapes;
    groups.heads = options_.output_groups;
    operators.push_back(product_by_head(groups, "output_group", all / options_.output_groups, options_.output_width));
    operators.push_back(replicated_linear(shapes, {"attention_output", options_.output_groups * options_.output_width,
                                                   shapes.hidden, false, on.dtype()}));
    operators.back().offload_module = offload::attn_proj;
  }

  /// Scores of the index in fp32, of all pairs of a sample at a time.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    return options_.has_index() ? 4 * on.shapes.sequence * (on.shapes.sequence / options_.ratio) : 0;
  }

 private:
  std::int64_t index_columns() const { return options_.index_heads * options_.index_width; }

  /// Projections of values and of the softmax, a bias for each place in an entry, and a norm.
  std::int64_t compressor_parameters(const Model& model, std::int64_t width) const {
    return options_.series * width * (2 * model.hidden + options_.ratio) + width;
  }

  std::int64_t entries(const RankShapes& shapes) const {
    return options_.ratio > 0 ? shapes.samples * (shapes.sequence / options_.ratio) : 0;
  }

  RankShapes core_shapes(const PartOnRank& on) const {
    RankShapes shapes = on.shapes;
    add_attention_shapes(shapes, on.model, on.strategy, {});
    const Pairs pairs(options_, shapes.sequence);
    const std::int64_t each = options_.ratio > 0 ? shapes.sequence / options_.ratio : 0;
    const std::int64_t seen =
        options_.window_keys + (options_.has_index() ? std::min(options_.index_keys, each) : each);
    shapes.pairs = pairs.window + pairs.read;
    shapes.keys = shapes.sequence + each;
    shapes.window = seen < shapes.sequence ? seen : 0;
    shapes.kv_heads = 1;
    shapes.head_dim = shapes.value_dim = on.model.head_width();
    shapes.stack.grouped_query_fusion = true;
    if (shapes.stack.attention == AttentionKernel::unfused) shapes.stack.attention = AttentionKernel::flash2;
    return shapes;
  }

  void add_core(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes) const {
    Strategy strategy = on.strategy;
    strategy.stack = shapes.stack;
    for (Operator& each : attention_core(shapes, strategy, false)) {
      // Values are keys; entries are saved beside, and which of them were selected.
      const std::int64_t keys = 2 * (entries(shapes) - shapes.tokens) * shapes.head_dim;
      each.saved_bytes += keys + (options_.has_index() ? 4 * shapes.tokens * options_.index_keys : 0);
      each.module_output_bytes += keys;
      operators.push_back(std::move(each));
    }
  }

  /// Two projections of every token, and a softmax over the tokens of an entry for each number. The index's are given
  /// no gradient of their input.
  void add_compressor(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes,
                      std::int64_t width, bool of_index) const {
    const std::int64_t columns = options_.series * width, tokens = shapes.tokens;
    Operator result;
    result.name = of_index ? "index_compressor" : "compressor";
    result.saved_bytes = 2 * 2 * tokens * columns;
    for (const std::string_view name : of_index
                                           ? std::array<std::string_view, 2>{"index_values", "index_gates"}
                                           : std::array<std::string_view, 2>{"compressed_values", "compressed_gates"}) {
      result.forward.push_back(kernel(gemm(name, tokens, columns, shapes.hidden)));
      if (!of_index) result.backward.push_back(kernel(gemm(name, tokens, shapes.hidden, columns)));
      add_weight_gradient(result.backward, shapes, compute::weight_gradient(name, columns, shapes.hidden, tokens));
      result.weight_gradient_input_bytes += 2 * tokens * (shapes.hidden + columns);
    }
    const std::int64_t moved = 2 * 2 * tokens * columns, written = 2 * entries(shapes) * width;
    result.forward.push_back(kernel(memory_bound("compress", moved + written)));
    result.backward.insert(result.backward.begin(), kernel(memory_bound("compress", 2 * moved + written)));
    operators.push_back(std::move(result));
    operators.push_back(norm(of_index ? "index_entry_norm" : "entry_norm", model, shapes, entries(shapes), width));
  }

  void add_index(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes) const {
    add_compressor(operators, model, shapes, options_.index_width, true);
    Operator inputs;
    inputs.name = "index";
    add_index_matrices(inputs, shapes,
                       {{"index_queries", options_.query_width, index_columns()},
                        {"index_weights", shapes.hidden, options_.index_heads}});
    operators.push_back(std::move(inputs));
    const std::int64_t rotated = shapes.tokens * index_columns();
    operators.push_back(
        elementwise("index_rotary", rotated, 4, 4, 2 * rotated + 2 * entries(shapes) * options_.index_width));
    operators.push_back(index_scores(index_on(shapes), shapes));
  }

  /// That of sparse attention, over entries instead of tokens.
  SelectionIndex index_on(const RankShapes& shapes) const {
    const Pairs pairs(options_, shapes.sequence);
    const std::int64_t each = shapes.sequence / options_.ratio;
    return {options_.index_heads,
            options_.index_width,
            each,
            std::min(options_.index_keys, each),
            pairs.before,
            pairs.read};
  }

  CompressedAttention options_;
};

}  // namespace

PartType compressed_attention_type() {
  return {"compressed_attention",
          "attention to a window and to compressed tokens before it (DeepSeek-V4)",
          compressed_attention_options().infos(),
          make_part<CompressedAttentionPart, compressed_attention_options>,
          {{"query_width", std::int64_t{64}},
           {"rotary_width", std::int64_t{8}},
           {"window_keys", std::int64_t{64}},
           {"ratio", std::int64_t{8}},
           {"output_width", std::int64_t{64}},
           {"index_heads", std::int64_t{8}},
           {"index_width", std::int64_t{32}},
           {"index_keys", std::int64_t{16}}}};
}

}  // namespace manyworlds::core::workload
