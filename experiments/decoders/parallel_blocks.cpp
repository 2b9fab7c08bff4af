// Families whose layers have attention and a feed-forward network side by side, behind one norm (GPT-J, CodeGen,
// Falcon, Phi, Cohere, StableLM 2) or two (GPT-NeoX, Falcon 40B), unless a flag says that they are in a row. Defaults
// are those of the classes in transformers/models/*/configuration_*.py (Hugging Face) at version 4.57.3, of GPT-NeoX
// at 4.57.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/model_keys/head_widths.hpp"

namespace manyworlds::experiments::models {
namespace {

/// Replaces settings that read_decoder() makes as most families have them.
void erase(ConfigReader& reader, const std::vector<std::string_view>& options) {
  std::erase_if(reader.values(), [&](const ConfigValue& value) {
    return std::find(options.begin(), options.end(), value.option) != options.end();
  });
}

void use_layer_norm(ConfigReader& reader) {
  erase(reader, {"norm"});
  reader.set("norm", "layer_norm");
}

std::string parallel_part(const std::string& options) {
  return options.empty() ? R"(["parallel_attention"])" : fmt::format(R"([{{"parallel_attention": {{{}}}}}])", options);
}

/// Sizes in the words of GPT-2, with rotary positions. Attention has no biases, the network and the output layer have.
void read_gptj(ConfigReader& reader) {
  read_gpt2_sizes(reader, "rotary", 0);
  add_alike(reader, parallel_part(R"("attention_biases": false)"));
  if (!reader.flag({"tie_word_embeddings"}, false))
    reader.leave_out({"vocab_size", "biases of the output layer", reader.setting("vocabulary")});
}

void read_gpt_neox(ConfigReader& reader) {
  read_decoder(reader);
  read_feed_forward(reader, FeedForward::plain);
  reader.set("kv_heads", reader.setting("heads"));
  use_layer_norm(reader);
  const bool attention = reader.flag({"attention_bias"}, true);
  reader.find({"classifier_dropout"});
  if (!reader.flag({"use_parallel_residual"}, true))
    return read_biases(reader, {attention, attention, true}, "attention_bias");
  reader.set("biases", true);
  add_alike(reader,
            parallel_part(fmt::format(R"("own_norm": true{})", attention ? "" : R"(, "attention_biases": false)")));
}

/// Heads of keys and values: as many as the newer layers say, one with multi-query attention, or one for each query's.
void read_falcon_heads(ConfigReader& reader, bool newer) {
  const std::int64_t heads = reader.setting("heads");
  const std::int64_t said = reader.integer({"num_kv_heads", "n_head_kv"}, heads);
  const bool shared = reader.flag({"multi_query"}, true);
  const std::int64_t kv_heads = newer ? said : shared ? 1 : heads;
  const SaidSize queries = said_size(reader, "heads", {"num_attention_heads", "n_head"});
  check_key_heads(reader, {reader.find({"num_kv_heads", "n_head_kv"}), kv_heads}, queries);
  reader.set("kv_heads", kv_heads, newer ? "num_kv_heads" : "multi_query");
  check_head_width(reader, said_size(reader, "hidden", {"hidden_size", "n_embed"}), queries);
}

void read_falcon(ConfigReader& reader) {
  reader.take("layers", {"num_hidden_layers", "n_layer"});
  reader.take("hidden", {"hidden_size", "n_embed"});
  reader.take("heads", {"num_attention_heads", "n_head"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  reader.take_if_set("ffn_hidden", {"ffn_hidden_size"});
  const bool newer = reader.flag({"new_decoder_architecture"}, false);
  read_falcon_heads(reader, newer);
  reader.set("norm", "layer_norm");
  read_network_activation(reader, {"activation"}, "gelu");
  reader.find({"apply_residual_connection_post_layernorm"});
  reader.set("biases", reader.flag({"bias"}, false), "bias");
  reader.set("dropout", reader.real({"hidden_dropout"}, 0) > 0, "hidden_dropout");
  const bool slopes = reader.flag({"alibi"}, false);
  reader.set("position", slopes ? "none" : "rotary", "alibi");
  if (slopes) note_score_biases(reader, "alibi");
  const std::int64_t norms = reader.integer({"num_ln_in_parallel_attn"}, newer ? 2 : 1);
  if (norms < 1 || norms > 2)
    reader.fail(reader.find({"num_ln_in_parallel_attn"}), "'num_ln_in_parallel_attn' must be 1 or 2");
  if (newer || reader.flag({"parallel_attn"}, true))
    add_alike(reader, parallel_part(norms == 2 ? R"("own_norm": true)" : ""));
}

void read_phi(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::plain);
  erase(reader, {"norm", "dropout"});
  reader.set("norm", "layer_norm");
  reader.set("dropout", reader.real({"resid_pdrop"}, 0) > 0, "resid_pdrop");
  reader.set("biases", true);
  refuse_flag(reader, "qk_layernorm", "norms of queries and keys with biases are not modelled");
  add_alike(reader, parallel_part(""));
  reader.leave_out({"vocab_size", "biases of the output layer", reader.setting("vocabulary")});
}

/// Norms have no shift, so that they have as many weights as RMS norms.
void read_cohere_sizes(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  reader.note("norms", "norms of mean and variance without a shift, which move the bytes of RMS norms");
  const bool biased = reader.flag({"attention_bias"}, false);
  read_biases(reader, {biased, biased, false}, "attention_bias");
  note_inside_kernels(reader, {"logit_scale"});
  for (const char* key : {"use_parallel_block", "use_gated_activation"})
    if (!reader.flag({key}, true))
      reader.refuse(reader.find({key}), fmt::format("'{}' is false: no published model of this family is so", key));
  // They say what the class does in any case, or how a rank stores its weights.
  reader.find({"cache_implementation", "use_embedding_sharing", "use_parallel_embedding"});
  if (const std::string type = reader.text({"position_embedding_type"}, "rope_gptj"); type != "rope_gptj")
    reader.refuse(reader.find({"position_embedding_type"}),
                  fmt::format("'position_embedding_type' is '{}': only rope_gptj is modelled", type.substr(0, 40)));
}

void read_cohere(ConfigReader& reader) {
  read_cohere_sizes(reader);
  const bool norms = reader.flag({"use_qk_norm"}, false);
  reader.set("query_key_norm", norms, "use_qk_norm");
  add_alike(reader, parallel_part(norms ? R"("norm_weights": "all_heads")" : ""));
}

constexpr const char* kWindowsFirst = "local_attn_first";  // of each period, whose last layer has none

/// Layers with a window are rotated, those without are not.
void read_cohere2(ConfigReader& reader) {
  read_cohere_sizes(reader);
  refuse_flag(reader, "use_qk_norm", "the class of this family has no norms of queries and keys");
  const std::int64_t period = reader.integer({"sliding_window_pattern", "_sliding_window_pattern"}, 4);
  if (period < 1) reader.fail(reader.find({"sliding_window_pattern"}), "'sliding_window_pattern' must be at least 1");
  const std::int64_t window = window_of(reader, {"sliding_window"});
  const std::string order = reader.text({"order_of_interleaved_layers"}, kWindowsFirst);
  const std::int64_t said = reader.integer({"layer_switch"}, period);
  std::vector<bool> windowed;
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer) windowed.push_back((layer + 1) % period != 0);
  if (const FoundKey types = reader.find({"layer_types"}); types.is_set()) {
    windowed = layers_named(reader, types, "sliding_attention", "full_attention");
  } else {
    if (order != kWindowsFirst)
      reader.refuse(reader.find({"order_of_interleaved_layers"}),
                    fmt::format("'order_of_interleaved_layers' is '{}': layers with windows come first, {}, unless "
                                "'layer_types' says otherwise",
                                order.substr(0, 40), kWindowsFirst));
    if (said != period)
      reader.refuse(reader.find({"layer_switch"}),
                    fmt::format("'layer_switch' is {}, and 'sliding_window_pattern' {}: every how many layers one has "
                                "no window",
                                said, period));
  }
  for (const bool each : windowed)
    reader.layers().add(each ? "windowed" : "full",
                        parallel_part(each ? fmt::format(R"("window": {})", window) : R"("position": "none")"));
}

/// Layers in a row, or, of the 12B model, side by side, with norms of each head of queries and keys.
void read_stablelm(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  read_window(reader);
  use_layer_norm(reader);
  const bool biased = reader.flag({"use_qkv_bias"}, false), norms = reader.flag({"qk_layernorm"}, false);
  if (!reader.flag({"use_parallel_residual"}, false)) {
    read_biases(reader, {.queries_keys_values = biased}, "use_qkv_bias");
    if (!norms) return;
    reader.set("query_key_norm", true, "qk_layernorm");
    return add_alike(reader, R"([{"attention": {"norm_weights": "all_heads"}}, "mlp"])");
  }
  reader.set("biases", false);
  reader.set("query_key_norm", norms, "qk_layernorm");
  if (biased) reader.carry("add-qkv-bias");
  add_alike(reader, parallel_part(
                        fmt::format(R"("qkv_biases": {}{})", biased, norms ? R"(, "norm_weights": "all_heads")" : "")));
}

constexpr std::string_view kGptjSizes =
    R"({"vocab_size": 50400, "n_positions": 2048, "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_inner": null,
        "rotary_dim": 64, "tie_word_embeddings": false, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02})";
constexpr std::string_view kFalconSizes =
    R"({"vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "tie_word_embeddings": true, "bias": false, "alibi": false, "new_decoder_architecture": false,
        "multi_query": true, "parallel_attn": true, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02,
        "rope_theta": 10000.0, "max_position_embeddings": 2048})";
constexpr std::string_view kFalconKeys = " alibi parallel_attn new_decoder_architecture ";

}  // namespace

std::vector<Family> parallel_families() {
  return {
      {"codegen", "CodeGenConfig", kGptjSizes, read_gptj},
      {"cohere", "CohereConfig",
       R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
           "num_attention_heads": 64, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": true,
           "attention_bias": false, "use_qk_norm": false, "layer_norm_eps": 1e-05, "initializer_range": 0.02,
           "rope_theta": 10000.0, "max_position_embeddings": 8192})",
       read_cohere},
      {"cohere2", "Cohere2Config",
       R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
           "num_attention_heads": 64, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": true,
           "attention_bias": false, "sliding_window": 4096, "layer_norm_eps": 1e-05, "initializer_range": 0.02,
           "rope_theta": 10000.0, "max_position_embeddings": 8192})",
       read_cohere2, " layer_types "},
      {"falcon", "FalconConfig", kFalconSizes, read_falcon, kFalconKeys},
      {"gpt_neox", "GPTNeoXConfig",
       R"({"vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64,
           "intermediate_size": 24576, "hidden_act": "gelu", "tie_word_embeddings": false,
           "use_parallel_residual": true, "layer_norm_eps": 1e-05, "initializer_range": 0.02,
           "rotary_emb_base": 10000, "rotary_pct": 0.25, "max_position_embeddings": 2048})",
       read_gpt_neox},
      {"gptj", "GPTJConfig", kGptjSizes, read_gptj},
      {"phi", "PhiConfig",
       R"({"vocab_size": 51200, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "gelu_new",
           "tie_word_embeddings": false, "resid_pdrop": 0.0, "layer_norm_eps": 1e-05, "initializer_range": 0.02,
           "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "max_position_embeddings": 2048})",
       read_phi},
      {"stablelm", "StableLmConfig",
       R"({"vocab_size": 50304, "hidden_size": 2560, "intermediate_size": 6912, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 32, "hidden_act": "silu", "tie_word_embeddings": false,
           "use_qkv_bias": false, "qk_layernorm": false, "use_parallel_residual": false, "layer_norm_eps": 1e-05,
           "initializer_range": 0.02, "rope_theta": 10000.0, "partial_rotary_factor": 0.25,
           "max_position_embeddings": 4096})",
       read_stablelm},
  };
}

}  // namespace manyworlds::experiments::models
