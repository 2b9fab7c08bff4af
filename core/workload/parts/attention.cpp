#include "core/workload/parts/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/operators/attention_core.hpp"
#include "core/workload/operators/cached_attention.hpp"
#include "core/workload/operators/context_exchange.hpp"
#include "core/workload/operators/key_heads.hpp"
#include "core/workload/parts/latent_attention.hpp"

namespace manyworlds::core::workload {
namespace {

const OptionTable<AttentionOptions>& attention_options() {
  static const OptionTable<AttentionOptions> table{
      option("causal", &AttentionOptions::causal, "a token sees itself and those before; false: all tokens"),
      option("chunk", &AttentionOptions::chunk, "tokens of a chunk, outside of which a token sees none; 0: one chunk",
             {0, 16'777'216}, "tokens"),
      option("sinks", &AttentionOptions::sinks, "the softmax of each head has one more term, a weight"),
      option("qkv_biases", &AttentionOptions::qkv_biases, "queries, keys and values have biases in any case"),
      choice("output_gate", &AttentionOptions::output_gate, {"none", "elements", "heads"},
             "what attention returns is multiplied by a gate for each element, or for each head"),
      choice("norm_weights", &AttentionOptions::norm_weights, {"head", "all_heads"},
             "weights of query_key_norm: of one head, the same for all, or of all heads"),
      option("value_head_dim", &AttentionOptions::value_head_dim,
             "width of a head's values, without latent attention; 0: as that of its keys", {0, 65'536}),
  };
  return table;
}

class SelfAttention final : public LayerPart, public SharesKeyHeads {
 public:
  explicit SelfAttention(const AttentionOptions& options) : options_(options) {}

  BranchNames branch_names() const override {
    return {"attention_norm", "attention_residual", recompute::layernorm, offload::attn_norm};
  }
  Modules data_part() const override { return data_part::attention; }

  std::string missing_size(const Model& model) const override {
    if (model.heads == 0) return "heads";
    return model.is_latent() && model.kv_rank == 0 ? "kv_rank" : "";
  }

  PartParameters parameters(const Model& model) const override {
    PartParameters counts = model.is_latent() ? latent_attention_parameters(model) : multi_head_parameters(model);
    if (model.biases) counts.replicated += model.hidden;  // of the output
    counts.sharded += model.hidden * gate_width(model, model.heads) + (options_.sinks ? model.heads : 0);
    return counts;
  }

  /// Beside latent attention there are none.
  PartParameters lora_parameters(const Model& model) const override {
    if (model.is_latent()) return {};
    const std::int64_t queries = model.heads * model.head_width() + gate_width(model, model.heads),
                       keys = model.kv() * model.head_width(), values = model.kv() * value_width(model);
    return {pair_parameters(model, lora_weight::linear_qkv, model.hidden, queries + keys + values) +
                magnitude_parameters(model, lora_weight::linear_qkv, queries + keys + values) +
                pair_parameters(model, lora_weight::linear_q, model.hidden, queries) +
                pair_parameters(model, lora_weight::linear_k, model.hidden, keys) +
                pair_parameters(model, lora_weight::linear_v, model.hidden, values) +
                pair_parameters(model, lora_weight::linear_proj, model.heads * value_width(model), model.hidden),
            magnitude_parameters(model, lora_weight::linear_proj, model.hidden)};
  }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override {
    return {{"heads", model.heads}, heads_of_keys(model)};
  }

  /// A gate's columns do not stand in the groups that ranks take.
  std::string unshared_key_heads(const Model& model, const Strategy& strategy, std::int64_t ranks) const override {
    if (model.kv() >= ranks || options_.output_gate == OutputGate::none)
      return workload::unshared_key_heads(model, strategy, ranks);
    return fmt::format("kv_heads {}, tp {}, an output_gate", model.kv(), ranks);
  }

  PartFormulas formulas(const Model& model) const override {
    const std::string core = fmt::format(" + 2 * pairs * heads * (key_width + {})",
                                         options_.value_head_dim > 0 ? "value_head_dim" : "value_width");
    if (model.is_latent()) return latent_formulas(model, core);
    const char* gated = options_.output_gate == OutputGate::elements ? " + heads" : "";
    const std::string columns =
        options_.value_head_dim == 0
            ? fmt::format("(2 * heads + 2 * kv_heads{}) * head_dim", gated)
            : fmt::format("((heads + kv_heads) * head_dim + (heads + kv_heads{}) * value_head_dim)", gated);
    const std::string gate = options_.output_gate == OutputGate::heads ? " + hidden * heads" : "";
    std::string parameters = "hidden * " + columns + gate;
    if (has_biases(model))
      parameters += options_.value_head_dim == 0 ? " + (heads + 2 * kv_heads) * head_dim"
                                                 : " + (heads + kv_heads) * head_dim + kv_heads * value_head_dim";
    if (model.biases) parameters += " + hidden";
    if (options_.sinks) parameters += " + heads";
    if (model.query_key_norm)
      parameters += options_.norm_weights == NormWeights::head ? " + 2 * head_dim" : " + (heads + kv_heads) * head_dim";
    return {parameters, "", "2 * sequence * (hidden * " + columns + gate + ")" + core};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on);
    if (on.model.is_latent())
      add_latent_attention_input(operators, on.model, shapes, on.dtype(), latent_keys(on.model));
    else
      add_multi_head_input(operators, on, shapes);
    if (is_generation(on.model)) operators.push_back(cache_write(shapes, cached_width(on)));
    add_core(operators, on, shapes);
    if (options_.output_gate != OutputGate::none) operators.push_back(output_gate(on.model, shapes));
    operators.push_back(
        row_parallel(shapes, {"attention_output", shapes.value_width(), shapes.hidden, on.model.biases, on.dtype()}));
    operators.back().offload_module = offload::attn_proj;
  }

  /// Gradients of scores before and after the softmax, or keys and values gathered from all ranks with their gradients.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const RankShapes shapes = shapes_of(on);
    return std::max({score_working_bytes(shapes), gathered_bytes(on.strategy, shapes),
                     gathered_head_bytes(shapes, gathered_head_width(on.model, shapes))});
  }

  /// Keys and values of the heads on this rank, or the narrow vectors that all heads share, of tokens in the window.
  std::optional<std::int64_t> cached_bytes(const PartOnRank& on) const override {
    if (!sees_all_before()) return std::nullopt;
    const std::int64_t all = on.model.cached_tokens + on.model.sequence;
    return 2 * on.shapes.samples * (on.kind.windowed ? std::min(all, on.model.window) : all) * cached_width(on);
  }

  /// Megatron-LM's unfused attention has one buffer of scores for all layers.
  std::int64_t shared_buffer_bytes(const PartOnRank& on) const override { return score_bytes(shapes_of(on)); }

  bool sees_all_before() const { return options_.causal && options_.chunk == 0; }

 private:
  /// Behind a cache, narrow keys and values are not widened again: queries come to them (DeepSeek-V2, section 2.1.2).
  static LatentKeys latent_keys(const Model& model) {
    return is_generation(model) && model.cached_tokens > 0 ? LatentKeys::shared : LatentKeys::by_head;
  }

  /// Returns the numbers of a token that a rank caches.
  std::int64_t cached_width(const PartOnRank& on) const {
    if (on.model.is_latent()) return on.model.kv_rank + on.model.rotary_dim;
    const RankShapes shapes = shapes_of(on);
    return shapes.kv_heads * (shapes.head_dim + shapes.value_dim);
  }

  void add_core(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes) const {
    if (is_generation(on.model) && on.model.cached_tokens > 0) {
      if (!on.model.is_latent()) return operators.push_back(cached_attention(shapes, CachedValues::own));
      RankShapes narrow = shapes;
      narrow.kv_heads = 1, narrow.head_dim = on.model.kv_rank + on.model.rotary_dim,
      narrow.value_dim = on.model.kv_rank;
      operators.push_back(cached_attention(narrow, CachedValues::in_keys));
      return operators.push_back(product_by_head(shapes, "value_up", on.model.kv_rank, shapes.value_dim));
    }
    for (Operator& each : attention_core(shapes, on.strategy, on.model.dropout, on.model.documents.get()))
      operators.push_back(std::move(each));
  }

  RankShapes shapes_of(const PartOnRank& on) const {
    RankShapes shapes = on.shapes;
    add_attention_shapes(shapes, on.model, on.strategy, on.kind);
    if (!on.model.is_latent()) shapes.value_dim = value_width(on.model);
    if (options_.chunk > 0 && options_.chunk < shapes.keys)  // a token sees those before it in its own chunk
      shapes.pairs = options_.chunk * shapes.sequence / 2, shapes.window = options_.chunk;
    if (!options_.causal) see_both_sides(shapes);
    return shapes;
  }

  /// A token sees all tokens, or those of a window around it, as many before it as behind it: of n tokens each sees
  /// 2 r + 1, but for r (r + 1) pairs that both ends lack. Tiles are as many as those of a window that looks back.
  static void see_both_sides(RankShapes& shapes) {
    if (shapes.window == 0) {
      shapes.pairs = shapes.sequence * shapes.keys, shapes.cut_by_mask = false;
      return;
    }
    const std::int64_t side = std::min((shapes.window - 1) / 2, shapes.keys - 1);
    shapes.pairs = (shapes.keys * (2 * side + 1) - side * (side + 1)) * shapes.sequence / shapes.keys;
  }

  static PartFormulas latent_formulas(const Model& model, const std::string& core) {
    const std::string matrices = latent_matrices(model);
    return {matrices + latent_norms(model) + (model.biases ? " + hidden" : ""), "",
            "2 * sequence * (" + matrices + ")" + core};
  }

  bool has_biases(const Model& model) const { return model.biases || options_.qkv_biases; }

  /// Returns the columns of the gate's matrix if there are so many heads.
  std::int64_t gate_width(const Model& model, std::int64_t heads) const {
    if (options_.output_gate == OutputGate::none) return 0;
    return options_.output_gate == OutputGate::heads ? heads : heads * value_width(model);
  }

  std::int64_t value_width(const Model& model) const {
    return !model.is_latent() && options_.value_head_dim > 0 ? options_.value_head_dim : model.value_width();
  }

  PartParameters multi_head_parameters(const Model& model) const {
    const std::int64_t query = model.heads * model.head_width(), key = model.kv() * model.head_width(),
                       value = model.kv() * value_width(model), output = model.heads * value_width(model);
    PartParameters counts{model.hidden * (query + key + value + output) + (has_biases(model) ? query + key + value : 0),
                          0};
    if (model.query_key_norm)
      counts.replicated = options_.norm_weights == NormWeights::head ? 2 * model.head_width() : query + key;
    return counts;
  }

  void add_multi_head_input(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes) const {
    const std::int64_t gate = gate_width(on.model, shapes.heads), gathered = gathered_head_width(on.model, shapes);
    const std::int64_t columns = gathered > 0 ? gathered / shapes.tensor_parallel : shapes.qkv_width() + gate;
    Linear qkv{"qkv", shapes.hidden, columns, has_biases(on.model), on.dtype()};
    if (!shapes.stack.projection_fusion) {
      qkv.parts = {shapes.query_width(), shapes.kv_heads * shapes.head_dim, shapes.kv_heads * shapes.value_dim};
      if (gate > 0) qkv.parts.push_back(gate);
    }
    operators.push_back(column_parallel(shapes, qkv));
    mark_input_from(operators.back(), recompute::layernorm);
    operators.back().offload_module = offload::qkv_linear;
    if (gathered > 0) operators.push_back(gather_heads(on.model, shapes, gathered));
    const std::int64_t rows = shapes.tokens * (shapes.heads + shapes.kv_heads);
    if (on.model.query_key_norm) operators.push_back(norm("query_key_norm", on.model, shapes, rows, shapes.head_dim));
    if (on.model.position == Position::rotary) operators.push_back(rotary(shapes, rows * shapes.head_dim));
  }

  /// y sigmoid(g): y and g are read and one tensor is written; backward both and the gradient are read and two written.
  Operator output_gate(const Model& model, const RankShapes& shapes) const {
    const std::int64_t elements = shapes.tokens * shapes.value_width();
    const std::int64_t gates = shapes.tokens * gate_width(model, shapes.heads);
    Operator result;
    result.name = "attention_gate";
    result.saved_bytes = 2 * (elements + gates);
    result.forward.push_back(kernel(compute::memory_bound(result.name, 4 * elements + 2 * gates)));
    result.backward.push_back(kernel(compute::memory_bound(result.name, 6 * elements + 4 * gates)));
    return result;
  }

  AttentionOptions options_;
};

}  // namespace

bool sees_all_before(const LayerPart& part) {
  const auto* attention = dynamic_cast<const SelfAttention*>(&part);
  return attention != nullptr && attention->sees_all_before();
}

PartType attention_type() {
  return {"attention",
          "self-attention: multi-head, grouped-query or latent",
          attention_options().infos(),
          make_part<SelfAttention, attention_options>,
          {}};
}

const LayerPart& attention_part() {
  static const SelfAttention part{AttentionOptions{}};
  return part;
}

}  // namespace manyworlds::core::workload
