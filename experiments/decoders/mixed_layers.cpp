// Families whose layers differ in windows, experts, positions, norms or widths: Gemma 2 and 3, GLM-4, Llama 4, SmolLM3,
// OLMo 3, EXAONE 4, MiMo, MiniMax M2 and Nemotron-NAS. Defaults of GLM-4, SmolLM3, OLMo 3 and EXAONE 4 are those
// of their classes at commit 008e574 of transformers.
#include <fmt/format.h>

#include <cstdlib>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/families.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

void read_gated_decoder(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
}

void refuse_biases(ConfigReader& reader, const Keys& keys = {"attention_bias"}) {
  for (const auto& key : keys)
    if (reader.flag({key}, false))
      reader.refuse(reader.find({key}), fmt::format("'{}' must be false in this family", key));
  reader.set("biases", false);
}

/// Returns whether each layer has a window: as `layer_types` says, otherwise all but the last of every `period`.
std::vector<bool> windowed_layers(ConfigReader& reader, std::int64_t period) {
  if (const FoundKey types = reader.find({"layer_types"}); types.is_set())
    return layers_named(reader, types, "sliding_attention", "full_attention");
  std::vector<bool> windowed;
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer) windowed.push_back((layer + 1) % period != 0);
  return windowed;
}

void read_sandwich(ConfigReader& reader, std::int64_t period) {
  read_gated_decoder(reader);
  reader.set("activation", "geglu");
  refuse_biases(reader);
  const std::int64_t window = window_of(reader, {"sliding_window"});
  if (reader.find({"query_pre_attn_scalar"}).is_set())
    reader.note("query_pre_attn_scalar", "a factor inside of the attention kernel");
  if (reader.flag({"use_bidirectional_attention"}, false))
    reader.refuse(reader.find({"use_bidirectional_attention"}), "'use_bidirectional_attention' is not modelled");
  for (const bool windowed : windowed_layers(reader, period))
    reader.layers().add(
        windowed ? "windowed" : "full",
        windowed
            ? fmt::format(R"([{{"attention": {{"norms": "both", "window": {}}}}}, {{"mlp": {{"norms": "both"}}}}])",
                          window)
            : R"([{"attention": {"norms": "both"}}, {"mlp": {"norms": "both"}}])");
}

void read_gemma2(ConfigReader& reader) {
  read_sandwich(reader, 2);
}

void read_gemma3(ConfigReader& reader) {
  const std::int64_t period = reader.integer({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  if (period < 1) reader.fail(reader.find({"sliding_window_pattern"}), "'sliding_window_pattern' must be at least 1");
  read_sandwich(reader, period);
  reader.set("query_key_norm", true);
}

/// Returns numbers of layers that a list names, or that stand behind each other by a step.
std::vector<bool> routed_layers(ConfigReader& reader) {
  const std::int64_t layers = reader.setting("layers"), step = reader.integer({"interleave_moe_layer_step"}, 1);
  std::vector<bool> routed(static_cast<std::size_t>(layers), false);
  if (const FoundKey list = reader.find({"moe_layers"}); list.is_set() && list.value->kind == Node::Kind::sequence) {
    for (const Node& item : list.value->items)
      for (std::size_t layer = 0; layer < routed.size(); ++layer)
        if (item.text == std::to_string(layer)) routed[layer] = true;
    return routed;
  }
  if (step > 0)
    for (std::int64_t layer = step - 1; layer < layers; layer += step) routed[static_cast<std::size_t>(layer)] = true;
  return routed;
}

/// Returns whether each layer has rotary positions, which are those with chunks, too.
std::vector<bool> rotary_layers(ConfigReader& reader) {
  std::vector<bool> rotary;
  if (const FoundKey list = reader.find({"no_rope_layers"});
      list.is_set() && list.value->kind == Node::Kind::sequence && !list.value->items.empty()) {
    for (const Node& item : reader.layer_list(list)) rotary.push_back(item.text != "0");
    return rotary;
  }
  const std::int64_t every = reader.integer({"no_rope_layer_interval"}, 4);
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer)
    rotary.push_back(every == 0 || (layer + 1) % every != 0);
  return rotary;
}

void read_llama4(ConfigReader& reader) {
  read_gated_decoder(reader);
  for (ConfigValue& value : reader.values())
    if (value.option == "ffn_hidden") value.option = "expert_ffn_hidden";
  reader.take("ffn_hidden", {"intermediate_size_mlp"});
  reader.set("shared_ffn_hidden", reader.setting("expert_ffn_hidden"), "intermediate_size");
  refuse_biases(reader);
  read_mixtral_experts(reader);
  if (reader.flag({"use_qk_norm"}, true)) reader.note("use_qk_norm", "its norms have no weights");
  reader.find({"attn_scale", "attn_temperature_tuning", "floor_scale", "for_llm_compressor", "layer_types"});
  const std::int64_t chunk = reader.integer({"attention_chunk_size"}, 0);
  const std::vector<bool> routed = routed_layers(reader), rotary = rotary_layers(reader);
  for (std::size_t layer = 0; layer < routed.size(); ++layer)
    reader.layers().add(fmt::format("{}{}", routed[layer] ? "routed" : "dense", rotary[layer] ? "" : "_full"),
                        fmt::format(R"([{{"attention": {{{}}}}}, "{}"])",
                                    rotary[layer] ? fmt::format(R"("chunk": {})", chunk) : R"("position": "none")",
                                    routed[layer] ? "experts" : "mlp"));
}

void read_mimo(ConfigReader& reader) {
  read_gated_decoder(reader);
  read_window(reader);
  reader.set("biases", false);
  const bool biased = reader.flag({"attention_bias"}, true);
  if (biased) reader.carry("add-qkv-bias");
  add_alike(reader, fmt::format(R"([{{"attention": {{"qkv_biases": {}}}}}, "mlp"])", biased));
  leave_out_next_tokens(reader);
}

void read_minimax_m2(ConfigReader& reader) {
  read_gated_decoder(reader);
  read_window(reader);
  reader.set("biases", false);
  read_mixtral_experts(reader);
  for (const char* key : {"layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta"})
    if (reader.find({key}).is_set()) reader.note(key, "a factor inside of kernels");
  if (reader.find({"mlp_intermediate_size", "shared_moe_mode"}).is_set())
    reader.note("mlp_intermediate_size",
                "of layers without experts and shared experts, which the family does not have");
  reader.set("query_key_norm", reader.flag({"use_qk_norm"}, true), "use_qk_norm");
  const std::string norms = reader.text({"qk_norm_type"}, "per_layer");
  if (reader.integer({"shared_intermediate_size"}, 0) > 0)
    reader.take("shared_ffn_hidden", {"shared_intermediate_size"});
  add_alike(reader,
            fmt::format(R"([{{"attention": {{"norm_weights": "{}"}}}}, {{"experts": {{"correction_bias": {}}}}}])",
                        norms == "per_layer" ? "all_heads" : "head", reader.flag({"use_routing_bias"}, true)));
  leave_out_next_tokens(reader);
}

/// Norms stand before and behind both parts.
void read_glm4(ConfigReader& reader) {
  read_gated_decoder(reader);
  reader.set("biases", false);
  const bool biased = reader.flag({"attention_bias"}, true);
  if (biased) reader.carry("add-qkv-bias");
  add_alike(reader,
            fmt::format(R"([{{"attention": {{"norms": "both", "qkv_biases": {}}}}}, {{"mlp": {{"norms": "both"}}}}])",
                        biased));
}

/// Adds a dense layer whose attention has a window, or rotary positions, or not.
void add_dense_layer(ConfigReader& reader, std::int64_t window, bool rotary, const std::string& more = {}) {
  std::string options = more;
  const auto add = [&](const std::string& one) { options += (options.empty() ? "" : ", ") + one; };
  if (window > 0) add(fmt::format(R"("window": {})", window));
  if (!rotary) add(R"("position": "none")");
  const std::string attention = options.empty() ? R"("attention")" : fmt::format(R"({{"attention": {{{}}}}})", options);
  reader.layers().add(fmt::format("{}{}", window > 0 ? "windowed" : "full", rotary ? "" : "_unrotated"),
                      fmt::format(R"([{}, "mlp"])", attention));
}

/// One layer of so many has no rotary positions; windows, if there are any, are in these.
void read_smollm3(ConfigReader& reader) {
  read_gated_decoder(reader);
  refuse_biases(reader, {"attention_bias", "mlp_bias"});
  reader.find({"max_window_layers"});  // of Qwen2's files; this family's class does not read it
  const std::int64_t window = window_of(reader, {"sliding_window"});
  const bool windows = reader.flag({"use_sliding_window"}, false);
  const std::vector<bool> rotary = rotary_layers(reader);
  std::vector<bool> windowed;
  if (const FoundKey types = reader.find({"layer_types"}); types.is_set())
    windowed = layers_named(reader, types, "sliding_attention", "full_attention");
  for (std::size_t layer = 0; layer < rotary.size(); ++layer) {
    const bool has_window = windowed.empty() ? windows && !rotary[layer] : windowed[layer];
    add_dense_layer(reader, has_window ? window : 0, rotary[layer]);
  }
}

/// Norms as of OLMo 2, whose weights are those of all heads.
void read_olmo3(ConfigReader& reader) {
  read_gated_decoder(reader);
  refuse_biases(reader);
  reader.set("query_key_norm", true);
  constexpr std::int64_t kPeriod = 4;
  const std::int64_t window = window_of(reader, {"sliding_window"});
  for (const bool windowed : windowed_layers(reader, kPeriod))
    add_dense_layer(reader, windowed ? window : 0, true, R"("norm_weights": "all_heads")");
  reader.note("norms", "behind attention and feed-forward network instead of before: the same bytes");
}

/// Returns which layers have windows: by a period, or by letters L and G, of which the last layer's is G in any case.
std::vector<bool> patterned_layers(ConfigReader& reader) {
  const FoundKey pattern = reader.find({"sliding_window_pattern"});
  std::string letters = reader.text({"sliding_window_pattern"}, "");
  if (letters.find_first_not_of("LG") != std::string::npos) {
    const std::int64_t period = reader.integer({"sliding_window_pattern"}, 0);
    if (period > 0) return windowed_layers(reader, period);
    letters.clear();
  }
  const auto layers = static_cast<std::size_t>(reader.setting("layers"));
  std::vector<bool> windowed(layers, false);
  for (std::size_t layer = 0; layer + 1 < layers && !letters.empty(); ++layer)
    windowed[layer] = letters[layer % letters.size()] == 'L';
  return windowed;
}

/// Layers without a window have no rotary positions, unless no layer has a window.
void read_exaone4(ConfigReader& reader) {
  read_gated_decoder(reader);
  reader.set("biases", false);
  reader.set("query_key_norm", true);
  const std::int64_t window = window_of(reader, {"sliding_window"});
  const bool listed = reader.find({"layer_types"}).is_set();
  std::vector<bool> windowed = patterned_layers(reader);
  if (listed) windowed = windowed_layers(reader, 1);
  for (const bool each : windowed) add_dense_layer(reader, each ? window : 0, each || window == 0);
  reader.note("norms", "behind attention and feed-forward network instead of before: the same bytes");
}

/// A half of a layer that a search of architectures has varied: "attention" or "ffn" of an entry of `block_configs`.
class SearchedPart {
 public:
  SearchedPart(ConfigReader& reader, const FoundKey& list, const Node& block, const std::string& name)
      : reader_(reader), list_(list), name_(name), node_(block.find(name)) {
    if (node_ == nullptr || node_->kind != Node::Kind::mapping)
      reader.fail(list, fmt::format("'block_configs' must have '{}' in every entry", name));
    for (const import::Entry& entry : node_->entries) {
      const bool known = entry.key == "no_op" || entry.key == "replace_with_linear" || entry.key == size_key();
      const bool is_empty = entry.value.kind == Node::Kind::null || entry.value.text == "false";
      if (!known && !is_empty)
        reader.refuse(entry.line, fmt::format("'{}' of 'block_configs' is not modelled", entry.key.substr(0, 60)));
    }
  }

  bool is_absent() const { return is("no_op"); }
  bool is_linear() const { return is("replace_with_linear"); }
  /// Heads of a group, or the factor of the width.
  double size() const {
    const Node* found = node_->find(size_key());
    char* end = nullptr;
    const double value = found == nullptr ? 0 : std::strtod(found->text.c_str(), &end);
    if (found == nullptr || found->text.empty() || *end != '\0' || !(value > 0 && value <= 1'000))
      reader_.fail(list_, fmt::format("'{}' of 'block_configs' must be a number above 0", size_key()));
    return value;
  }

 private:
  std::string_view size_key() const { return name_ == "ffn" ? "ffn_mult" : "n_heads_in_group"; }
  bool is(std::string_view key) const {
    const Node* found = node_->find(key);
    return found != nullptr && found->text == "true";
  }

  ConfigReader& reader_;
  const FoundKey& list_;
  std::string name_;
  const Node* node_;
};

/// Attention with so many keys and values, one matrix in its place, or nothing (vLLM, nemotron_nas.py).
std::string searched_attention(ConfigReader& reader, const FoundKey& list, const SearchedPart& part) {
  if (part.is_absent()) return "";
  if (part.is_linear()) return R"({"linear": {"bias": false}})";
  const std::int64_t heads = reader.setting("heads");
  const auto group = static_cast<std::int64_t>(part.size());
  if (group < 1 || heads % group != 0)
    reader.fail(list, fmt::format("'n_heads_in_group' must divide 'num_attention_heads', {}", heads));
  return fmt::format(R"({{"attention": {{"kv_heads": {}}}}})", heads / group);
}

/// The width is two thirds of a multiple of the hidden size, rounded up to a multiple of 256 (vLLM, nemotron_nas.py,
/// _ffn_mult_to_intermediate_size()).
std::string searched_network(ConfigReader& reader, const SearchedPart& part) {
  if (part.is_absent()) return "";
  if (part.is_linear()) return R"({"linear": {"bias": false}})";
  constexpr std::int64_t kMultiple = 256;
  const auto width = static_cast<std::int64_t>(2 * part.size() * static_cast<double>(reader.setting("hidden")) / 3);
  return fmt::format(R"({{"mlp": {{"ffn_hidden": {}}}}})", (width + kMultiple - 1) / kMultiple * kMultiple);
}

void read_nemotron_nas(ConfigReader& reader) {
  read_gated_decoder(reader);
  refuse_biases(reader, {"attention_bias", "mlp_bias"});
  const FoundKey list = reader.find({"block_configs"});
  if (!list.is_set())
    throw core::InputError("'block_configs' is missing: attention and feed-forward network of each layer",
                           reader.file());
  for (const Node& block : reader.layer_list(list)) {
    const std::string attention = searched_attention(reader, list, SearchedPart(reader, list, block, "attention"));
    const std::string network = searched_network(reader, SearchedPart(reader, list, block, "ffn"));
    const std::string parts = attention + (attention.empty() || network.empty() ? "" : ", ") + network;
    if (parts.empty()) continue;  // its input is its output
    reader.layers().add(reader.layers().name_of("[" + parts + "]", "layer"), "[" + parts + "]");
  }
  if (reader.layers().empty()) reader.fail(list, "'block_configs' leaves no layer with anything in it");
}

}  // namespace

std::vector<Family> mixed_families() {
  return {
      {"exaone4", "Exaone4Config",
       R"({"vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 32, "hidden_act": "silu", "tie_word_embeddings": false,
           "sliding_window": 4096, "sliding_window_pattern": 4, "rms_norm_eps": 1e-05, "initializer_range": 0.02,
           "rope_theta": 10000.0, "max_position_embeddings": 2048})",
       read_exaone4, " layer_types "},
      {"gemma2", "Gemma2Config",
       R"({"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
           "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
           "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true, "attention_bias": false,
           "sliding_window": 4096, "rms_norm_eps": 1e-06, "initializer_range": 0.02, "rope_theta": 10000.0,
           "max_position_embeddings": 8192})",
       read_gemma2, " layer_types "},
      {"gemma3_text", "Gemma3TextConfig",
       R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
           "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
           "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true, "attention_bias": false,
           "sliding_window": 4096, "rms_norm_eps": 1e-06, "initializer_range": 0.02, "rope_theta": 1000000.0,
           "max_position_embeddings": 131072})",
       read_gemma3, " layer_types "},
      {"glm4", "Glm4Config",
       R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
           "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "hidden_act": "silu",
           "tie_word_embeddings": false, "attention_bias": true, "rms_norm_eps": 1.5625e-07,
           "initializer_range": 0.02, "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
           "max_position_embeddings": 131072})",
       read_glm4},
      {"glm4v_text", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_glm4},
      {"llama4_text", "Llama4TextConfig",
       R"({"vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
           "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
           "hidden_act": "silu", "tie_word_embeddings": false, "attention_bias": false, "num_experts_per_tok": 1,
           "num_local_experts": 16, "interleave_moe_layer_step": 1, "no_rope_layer_interval": 4,
           "attention_chunk_size": 8192, "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 500000.0,
           "max_position_embeddings": 131072})",
       read_llama4,
       " layer_types attention_chunk_size no_rope_layer_interval interleave_moe_layer_step no_rope_layers "},
      {"mimo", "", R"({"hidden_act": "silu", "tie_word_embeddings": false, "use_sliding_window": false})", read_mimo},
      {"minimax_m2", "MiniMaxM2Config",
       R"({"vocab_size": 200064, "hidden_size": 3072, "intermediate_size": 1536, "num_hidden_layers": 62,
           "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu",
           "tie_word_embeddings": false, "num_experts_per_tok": 8, "num_local_experts": 256, "rms_norm_eps": 1e-06,
           "initializer_range": 0.02, "rope_theta": 5000000.0, "max_position_embeddings": 196608})",
       read_minimax_m2},
      {"nemotron-nas", "",
       R"({"hidden_act": "silu", "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false})",
       read_nemotron_nas, " block_configs "},
      {"olmo3", "Olmo3Config",
       R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "sliding_window": 4096, "rms_norm_eps": 1e-05, "initializer_range": 0.02,
           "rope_theta": 500000.0, "max_position_embeddings": 2048})",
       read_olmo3, " layer_types "},
      {"smollm3", "SmolLM3Config",
       R"({"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
           "num_attention_heads": 16, "num_key_value_heads": 4, "hidden_act": "silu", "tie_word_embeddings": true,
           "attention_bias": false, "mlp_bias": false, "use_sliding_window": false, "sliding_window": null,
           "no_rope_layer_interval": 4, "rms_norm_eps": 1e-06, "initializer_range": 0.02, "rope_theta": 2000000.0,
           "max_position_embeddings": 32768})",
       read_smollm3, " layer_types no_rope_layers no_rope_layer_interval "},
  };
}

}  // namespace manyworlds::experiments::models
