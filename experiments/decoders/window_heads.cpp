// Families whose layers with windows have other heads than those without: MiMo-V2-Flash and Step 3.5 and 3.7. Defaults
// are those that every published file has; sinks and widths of MiMo-V2-Flash are those of its class in transformers
// (huggingface/transformers at 019770d, models/mimo_v2_flash).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/model_keys/head_widths.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

constexpr std::int64_t kMaxHeads = 100'000;

void read_gated_decoder(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  reader.set("biases", false);
}

/// Returns a whole number of a text; 0 if it is none from 1 to `most`.
std::int64_t number_of(std::string_view text, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 && value <= most ? value : 0;
}

/// Heads, heads of keys and values, and their widths, as the options of attention that a layer is given.
struct Heads {
  std::int64_t queries = 0, keys = 0, key_width = 0, value_width = 0;
  std::string text() const {
    return fmt::format(R"("heads": {}, "kv_heads": {}, "head_dim": {}{})", queries, keys, key_width,
                       value_width == key_width ? "" : fmt::format(R"(, "value_head_dim": {})", value_width));
  }
};

void check_heads(ConfigReader& reader, const Heads& heads, std::string_view keys, std::string_view queries) {
  check_key_heads(reader, {reader.find({keys}), heads.keys}, {reader.find({queries}), heads.queries});
  if (heads.key_width < 1 || heads.value_width < 1)
    throw core::InputError(
        fmt::format("the widths of a head must be 1 or more, not {} and {}", heads.key_width, heads.value_width),
        reader.file());
}

/// Returns whether each layer has a window: 1 in `hybrid_layer_pattern`, or by name, or, of MiMo-V2-Flash, all but the
/// first and every sixth.
std::vector<bool> mimo_windows(ConfigReader& reader) {
  if (const FoundKey list = reader.find({"hybrid_layer_pattern"}); list.is_set())
    return layers_named(reader, list, "1", "0");
  if (const FoundKey types = reader.find({"layer_types"}); types.is_set())
    return layers_named(reader, types, "sliding_attention", "full_attention");
  std::vector<bool> windowed;
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer)
    windowed.push_back(layer != 0 && (layer + 1) % 6 != 0);
  return windowed;
}

/// Returns whether each layer has experts: 1 in `moe_layer_freq`, or by name, or all but the first.
std::vector<bool> mimo_experts(ConfigReader& reader) {
  if (const FoundKey list = reader.find({"moe_layer_freq"}); list.is_set() && list.value->kind == Node::Kind::sequence)
    return layers_named(reader, list, "1", "0");
  if (const FoundKey types = reader.find({"mlp_layer_types"}); types.is_set())
    return layers_named(reader, types, "sparse", "dense");
  std::vector<bool> routed(static_cast<std::size_t>(reader.setting("layers")), true);
  if (!routed.empty()) routed.front() = false;
  return routed;
}

/// The class doubles heads of keys and values in layers with windows; files say how many these are.
void read_mimo_v2(ConfigReader& reader) {
  read_gated_decoder(reader);
  refuse_flag(reader, "attention_bias", "biases beside heads of two widths are not modelled");
  reader.take("experts", {"n_routed_experts", "num_local_experts"});
  reader.take("experts_per_token", {"num_experts_per_tok"});
  reader.take("expert_ffn_hidden", {"moe_intermediate_size"});
  if (reader.setting("experts_per_token") > reader.setting("experts"))
    reader.fail(reader.find({"num_experts_per_tok"}), "'num_experts_per_tok' is more than 'n_routed_experts'");
  if (reader.integer({"n_shared_experts"}, 0) > 0)
    reader.refuse(reader.find({"n_shared_experts"}), "'n_shared_experts': the class of this family has none");
  const std::int64_t heads = reader.setting("heads"), kv_heads = reader.setting("kv_heads"),
                     width =
                         reader.setting("head_dim") > 0 ? reader.setting("head_dim") : reader.setting("hidden") / heads,
                     values = reader.integer({"v_head_dim"}, width);
  const Heads full{heads, kv_heads, width, values};
  const Heads windowed{reader.integer({"swa_num_attention_heads"}, heads),
                       reader.integer({"swa_num_key_value_heads"}, 2 * kv_heads),
                       reader.integer({"swa_head_dim"}, width), reader.integer({"swa_v_head_dim"}, values)};
  check_heads(reader, full, "num_key_value_heads", "num_attention_heads");
  check_heads(reader, windowed, "swa_num_key_value_heads", "swa_num_attention_heads");
  const std::int64_t window = window_of(reader, {"sliding_window", "sliding_window_size"});
  const bool sinks = reader.flag({"add_swa_attention_sink_bias"}, true),
             full_sinks = reader.flag({"add_full_attention_sink_bias"}, false);
  reader.find({"sliding_window_size", "attention_chunk_size", "layernorm_epsilon", "swa_rope_theta"});
  note_inside_kernels(reader, {"attention_value_scale"});
  const std::vector<bool> routed = mimo_experts(reader);
  std::size_t layer = 0;
  for (const bool narrow : mimo_windows(reader)) {
    const std::string attention = narrow
                                      ? fmt::format(R"({}, "window": {}, "sinks": {})", windowed.text(), window, sinks)
                                      : fmt::format(R"({}, "sinks": {})", full.text(), full_sinks);
    const bool has_experts = routed[layer++];
    reader.layers().add(fmt::format("{}{}", narrow ? "windowed" : "full", has_experts ? "" : "_dense"),
                        fmt::format(R"([{{"attention": {{{}}}}}, {}])", attention,
                                    has_experts ? R"({"experts": {"correction_bias": true}})" : R"("mlp")"));
  }
  leave_out_next_tokens(reader, false);
}

/// Heads of windowed layers stand in a mapping of their own, which some copies of the file lack.
Heads step_heads_in_windows(ConfigReader& reader, const Heads& full) {
  const FoundKey other = reader.find({"attention_other_setting"});
  const auto said = [&](std::string_view key, std::int64_t otherwise) {
    const Node* found = other.is_set() ? other.value->find(key) : nullptr;
    return found == nullptr ? otherwise : number_of(found->text, kMaxHeads);
  };
  const std::int64_t heads = said("num_attention_heads", 0);
  if (heads == 0) {
    reader.refuse(other,
                  "'attention_other_setting' with 'num_attention_heads' is missing: heads of layers with windows");
    return full;
  }
  const Heads result{heads, said("num_attention_groups", full.keys), said("head_dim", full.key_width),
                     said("head_dim", full.key_width)};
  check_heads(reader, result, "attention_other_setting", "attention_other_setting");
  return result;
}

/// Returns the first entries of `layer_types`, behind which those of layers that predict further tokens may stand.
std::vector<bool> step_windows(ConfigReader& reader) {
  const auto layers = static_cast<std::size_t>(reader.setting("layers"));
  const FoundKey types = reader.find({"layer_types"});
  if (!types.is_set()) throw core::InputError("'layer_types' is missing: which layers have windows", reader.file());
  const auto further = static_cast<std::size_t>(reader.integer({"num_nextn_predict_layers"}, 0));
  if (types.value->kind != Node::Kind::sequence || types.value->items.size() < layers ||
      types.value->items.size() > layers + further)
    reader.fail(types, fmt::format("'layer_types' must have an entry for each of {} layers", layers));
  std::vector<bool> windowed;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::string& type = types.value->items[layer].text;
    if (type != "sliding_attention" && type != "full_attention")
      reader.fail(types, fmt::format("'layer_types' has '{}'; known are sliding_attention and full_attention",
                                     type.substr(0, 40)));
    windowed.push_back(type == "sliding_attention");
  }
  return windowed;
}

/// Returns whether each layer has experts: those that a text lists ("3,4,5"), or all behind the first ones.
std::vector<bool> step_experts(ConfigReader& reader) {
  const auto layers = static_cast<std::size_t>(reader.setting("layers"));
  std::vector<bool> routed(layers, false);
  const FoundKey list = reader.find({"moe_layers_enum"});
  if (!list.is_set()) {
    const auto dense = static_cast<std::size_t>(reader.integer({"first_k_dense_replace"}, 0));
    for (std::size_t layer = dense; layer < layers; ++layer) routed[layer] = true;
    return routed;
  }
  std::string_view left = list.value->text;
  while (!left.empty()) {
    const std::size_t comma = std::min(left.find(','), left.size());
    const std::string_view one = left.substr(0, comma);
    const std::int64_t layer = one == "0" ? 0 : number_of(one, static_cast<std::int64_t>(layers) - 1);
    if (layer == 0 && one != "0")
      reader.fail(list,
                  fmt::format("'moe_layers_enum' must name layers from 0 to {}, with commas between", layers - 1));
    routed[static_cast<std::size_t>(layer)] = true;
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  return routed;
}

void read_step(ConfigReader& reader) {
  read_gated_decoder(reader);
  if (!reader.find({"num_key_value_heads"}).is_set()) {
    std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "kv_heads"; });
    reader.take("kv_heads", {"num_attention_groups"});
  }
  reader.set("query_key_norm", true);
  reader.take("experts", {"num_experts", "moe_num_experts"});
  reader.take("experts_per_token", {"num_experts_per_tok", "moe_top_k"});
  reader.take("expert_ffn_hidden", {"moe_intermediate_size"});
  reader.take("shared_ffn_hidden", {"share_expert_dim"});
  if (!reader.flag({"use_moe"}, true)) reader.refuse(reader.find({"use_moe"}), "'use_moe' must be true in this family");
  const std::int64_t width =
      reader.setting("head_dim") > 0 ? reader.setting("head_dim") : reader.setting("hidden") / reader.setting("heads");
  const Heads full{reader.setting("heads"), reader.setting("kv_heads"), width, width};
  check_heads(reader, full, "num_attention_groups", "num_attention_heads");
  const Heads windowed = step_heads_in_windows(reader, full);
  const std::int64_t window = window_of(reader, {"sliding_window"});
  const bool bias = reader.flag({"use_moe_router_bias"}, true), gate = reader.flag({"use_head_wise_attn_gate"}, true);
  reader.find({"n_shared_experts", "att_impl_type", "moe_router_activation", "norm_expert_weight", "need_fp32_gate",
               "partial_rotary_factors", "yarn_only_types", "swiglu_limits", "swiglu_limits_shared", "max_seq_len",
               "use_qk_norm", "num_attention_groups", "first_k_dense_replace"});
  const std::vector<bool> routed = step_experts(reader);
  std::size_t layer = 0;
  for (const bool narrow : step_windows(reader)) {
    const bool has_experts = routed[layer++];
    std::string attention = gate ? R"("output_gate": "heads")" : R"("output_gate": "none")";
    if (narrow) attention += fmt::format(R"(, {}, "window": {})", windowed.text(), window);
    reader.layers().add(
        fmt::format("{}{}", narrow ? "windowed" : "full", has_experts ? "" : "_dense"),
        fmt::format(R"([{{"attention": {{{}}}}}, {}])", attention,
                    has_experts ? fmt::format(R"({{"experts": {{"correction_bias": {}}}}})", bias) : R"("mlp")"));
  }
  leave_out_next_tokens(reader, false);  // layers with windows, and heads of their own
}

constexpr std::string_view kSaid = R"({"hidden_act": "silu", "tie_word_embeddings": false})";

}  // namespace

std::vector<Family> window_families() {
  return {
      {"mimo_v2_flash", "", kSaid, read_mimo_v2, " layer_types attention_chunk_size "},
      {"step3p5", "", kSaid, read_step, " layer_types "},
      {"step3p7", "", kSaid, read_step, " layer_types "},
  };
}

}  // namespace manyworlds::experiments::models
