// Families whose layers are alike but for the first ones without experts, dense (OLMo, OPT, Apertus, Arcee, Helium,
// ERNIE 4.5, Hunyuan, InternLM, MiniCPM) and with experts (Granite, Phi-3.5-MoE, ERNIE 4.5, Hunyuan, Ling). Defaults
// are those of the classes in transformers/models/*/configuration_*.py (Hugging Face): of OLMo, Apertus, Helium and
// ERNIE 4.5 at commit 008e574, ERNIE 4.5 with experts 001f85b, OPT 014674d, Granite and Phi-3.5-MoE
// 040e1a7, Hunyuan with experts 008cd60. The others have code of their own beside their weights.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

void read_gated(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  read_window(reader);
}

/// Norms have no weights.
void read_olmo(ConfigReader& reader) {
  read_gated(reader);
  const bool biased = reader.flag({"attention_bias"}, false);
  read_biases(reader, {biased, biased, false}, "attention_bias");
  reader.note("norms", fmt::format("norms without weights, of which {} are counted that there are not",
                                   count_text((2 * reader.setting("layers") + 1) * reader.setting("hidden"))));
}

/// The table of positions has two rows before the first, which padding needs.
void read_opt(ConfigReader& reader) {
  read_decoder(reader);
  std::erase_if(reader.values(), [](const ConfigValue& value) {
    return value.option == "norm" || value.option == "position" || value.option == "dropout";
  });
  reader.take("ffn_hidden", {"ffn_dim"});
  reader.set("kv_heads", reader.setting("heads"));
  reader.set("norm", "layer_norm");
  reader.set("position", "learned");
  reader.set("dropout", reader.real({"dropout"}, 0.1) > 0, "dropout");
  read_network_activation(reader, {"activation_function"}, "relu");
  reader.set("biases", reader.flag({"enable_bias"}, true), "enable_bias");
  if (!reader.flag({"do_layer_norm_before"}, true))
    reader.refuse(reader.find({"do_layer_norm_before"}), "'do_layer_norm_before' is false: norms behind the sums");
  if (!reader.flag({"layer_norm_elementwise_affine"}, true))
    reader.refuse(reader.find({"layer_norm_elementwise_affine"}),
                  "'layer_norm_elementwise_affine' is false: norms without weights beside a bias");
  const FoundKey projected = reader.find({"word_embed_proj_dim"});
  if (reader.integer({"word_embed_proj_dim"}, reader.setting("hidden")) != reader.setting("hidden"))
    reader.refuse(projected,
                  "'word_embed_proj_dim' is not 'hidden_size': projections behind the table and before the head");
  if (reader.real({"layerdrop"}, 0) > 0)
    reader.refuse(reader.find({"layerdrop"}), "'layerdrop' is above 0: layers that some steps leave out");
  reader.find({"_remove_final_layer_norm", "activation_dropout"});
  reader.leave_out({"max_position_embeddings", "two rows of the table of positions", 2 * reader.setting("hidden")});
}

/// The activation function, xIELU, has two learned numbers in each layer.
void read_apertus(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::plain);
  const bool biased = reader.flag({"attention_bias"}, false);
  read_biases(reader, {biased, biased, reader.flag({"mlp_bias"}, false)}, "attention_bias");
  reader.set("query_key_norm", reader.flag({"qk_norm"}, true), "qk_norm");
  refuse_flag(reader, "post_norm", "norms behind attention and feed-forward network are not those of this family");
  if (reader.text({"hidden_act"}, "xielu") == "xielu")
    reader.leave_out(
        {"hidden_act", "two numbers of the activation function in each layer", 2 * reader.setting("layers")});
}

/// No gate, and ReLU squared.
void read_arcee(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::plain);
  const bool attention = reader.flag({"attention_bias"}, false), mlp = reader.flag({"mlp_bias"}, false);
  read_biases(reader, {attention, attention, mlp}, attention ? "attention_bias" : "mlp_bias");
}

void read_helium(ConfigReader& reader) {
  read_gated(reader);
  read_biases(
      reader,
      {.queries_keys_values = reader.flag({"attention_bias"}, false), .feed_forward = reader.flag({"mlp_bias"}, false)},
      "attention_bias");
}

void read_internlm(ConfigReader& reader) {
  read_gated(reader);
  const bool biased = reader.flag({"bias"}, false);
  const bool later = reader.config().family == "internlm3";  // where queries, keys and values have a key of their own
  read_biases(reader, {later ? reader.flag({"qkv_bias"}, false) : biased, biased, later && biased}, "bias");
}

void read_minicpm(ConfigReader& reader) {
  read_gated(reader);
  read_biases(reader, {.queries_keys_values = reader.flag({"attention_bias"}, false)}, "attention_bias");
  note_inside_kernels(reader, {"scale_emb", "scale_depth", "dim_model_base"});
}

void read_granite_moe(ConfigReader& reader) {
  read_gated(reader);
  const bool biased = reader.flag({"attention_bias"}, false);
  read_biases(reader, {biased, biased, false}, "attention_bias");
  read_mixtral_experts(reader);
  note_inside_kernels(reader,
                      {"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"});
}

void read_phimoe(ConfigReader& reader) {
  read_gated(reader);
  std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "norm"; });
  reader.set("norm", "layer_norm");
  const bool biased = reader.flag({"attention_bias"}, false);
  read_biases(reader, {biased, biased, false}, "attention_bias");
  read_mixtral_experts(reader);
  if (reader.flag({"lm_head_bias"}, false))
    reader.leave_out({"lm_head_bias", "biases of the output layer", reader.setting("vocabulary")});
}

/// Adds layers of attention and a network, the first `dense` ones without experts.
void add_routed_layers(ConfigReader& reader, std::int64_t dense, bool correction_bias) {
  const std::string experts =
      fmt::format(R"(["attention", {{"experts": {{"correction_bias": {}}}}}])", correction_bias);
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer)
    reader.layers().add(layer < dense ? "dense" : "routed", layer < dense ? R"(["attention", "mlp"])" : experts);
}

void read_ernie(ConfigReader& reader) {
  read_gated(reader);
  const bool biased = reader.flag({"use_bias"}, false);
  read_biases(reader, {biased, biased, biased}, "use_bias");
  if (!reader.flag({"use_rmsnorm"}, true))
    reader.refuse(reader.find({"use_rmsnorm"}), "'use_rmsnorm' is false: no published model of this family is so");
}

/// Experts from one layer on, in the words of the family.
void read_ernie_moe(ConfigReader& reader) {
  read_ernie(reader);
  reader.take("experts", {"moe_num_experts", "num_experts"});
  reader.take("experts_per_token", {"moe_k", "num_experts_per_tok"});
  reader.take("expert_ffn_hidden", {"moe_intermediate_size"});
  if (reader.setting("experts_per_token") > reader.setting("experts"))
    reader.fail(reader.find({"moe_k"}), "'moe_k' is more than 'moe_num_experts'");
  const std::int64_t shared = reader.integer({"moe_num_shared_experts"}, 0), layers = reader.setting("layers");
  if (shared > 0)
    reader.set("shared_ffn_hidden", shared * reader.setting("expert_ffn_hidden"), "moe_num_shared_experts");
  if (reader.integer({"moe_layer_interval"}, 1) != 1)
    reader.refuse(reader.find({"moe_layer_interval"}),
                  "'moe_layer_interval' is not 1: experts in only one of so many layers are not modelled");
  const FoundKey end = reader.find({"moe_layer_end_index"});
  if (end.is_set() && end.value->text != "-1" && reader.integer({"moe_layer_end_index"}, 0) != layers - 1)
    reader.refuse(end, "'moe_layer_end_index' is not the last layer: layers without experts behind are not modelled");
  reader.find({"moe_norm_min", "moe_capacity", "moe_gate", "moe_gate_act", "moe_use_aux_free"});  // of the router
  add_routed_layers(reader, reader.integer({"moe_layer_start_index"}, 0), true);
  leave_out_next_tokens(reader);
}

/// Ling and Ring, whose second generation norms queries and keys and corrects the scores of experts.
void read_bailing_moe(ConfigReader& reader) {
  read_gated(reader);
  read_biases(reader, {reader.flag({"use_qkv_bias"}, false), reader.flag({"use_bias"}, false), false}, "use_qkv_bias");
  reader.set("query_key_norm", reader.flag({"use_qk_norm"}, false), "use_qk_norm");
  reader.take("experts", {"num_experts"});
  reader.take("experts_per_token", {"num_experts_per_tok"});
  reader.take("expert_ffn_hidden", {"moe_intermediate_size"});
  if (reader.setting("experts_per_token") > reader.setting("experts"))
    reader.fail(reader.find({"num_experts_per_tok"}), "'num_experts_per_tok' is more than 'num_experts'");
  const std::int64_t width =
      reader.integer({"moe_shared_expert_intermediate_size"}, reader.setting("expert_ffn_hidden"));
  const std::int64_t shared = reader.integer({"num_shared_experts"}, 0);
  if (shared > 0) reader.set("shared_ffn_hidden", shared * width, "num_shared_experts");
  refuse_flag(reader, "norm_head", "a norm of the output layer's weights is not modelled");
  reader.find({"moe_router_enable_shared_expert", "moe_router_enable_routed_scaling", "moe_router_topk_scaling_factor",
               "use_rmsnorm", "norm_softmax"});
  add_routed_layers(reader, reader.integer({"first_k_dense_replace"}, 0),
                    reader.flag({"moe_router_enable_expert_bias"}, false));
  leave_out_next_tokens(reader);
}

/// Returns a number, or the one that a list has for every layer.
std::int64_t same_in_all(ConfigReader& reader, Keys keys, std::int64_t otherwise) {
  const FoundKey found = reader.find(keys);
  if (!found.is_set() || found.value->kind != Node::Kind::sequence) return reader.integer(keys, otherwise);
  const std::vector<Node>& items = reader.layer_list(found);
  core::OptionInfo info;
  info.minimum = 0;
  info.maximum = 1e9;
  for (const Node& item : items)
    if (item.text != items.front().text) {
      reader.refuse(found, fmt::format("'{}' is not the same for all layers: such layers are not modelled", found.key));
      return otherwise;
    }
  return items.empty() ? otherwise : std::get<std::int64_t>(import::read_value(items.front(), info, found.key));
}

void read_hunyuan(ConfigReader& reader) {
  read_gated(reader);
  const bool biased = reader.flag({"attention_bias"}, false);
  read_biases(reader, {biased, biased, false}, "attention_bias");
  reader.set("query_key_norm", reader.flag({"use_qk_norm"}, true), "use_qk_norm");
  refuse_flag(reader, "mlp_bias", "biases of the feed-forward network alone are not modelled");
  refuse_flag(reader, "use_cla", "keys and values that several layers share are not modelled");
  if (reader.find({"kv_lora_rank"}).is_set())
    reader.refuse(reader.find({"kv_lora_rank"}), "'kv_lora_rank': latent attention is not modelled in this family");
  if (reader.text({"norm_type"}, "rms") != "rms")
    reader.refuse(reader.find({"norm_type"}), "'norm_type' is not rms: this norm is not modelled");
  const std::int64_t width =
      reader.setting("head_dim") > 0 ? reader.setting("head_dim") : reader.setting("hidden") / reader.setting("heads");
  if (reader.integer({"attention_head_dim"}, width) != width)
    reader.fail(reader.find({"attention_head_dim"}),
                fmt::format("'attention_head_dim' is not {}, as wide as a head is", width));
  reader.find({"dense_list", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "cla_share_factor"});
}

/// One expert is shared, as wide as the others.
void read_hunyuan_moe(ConfigReader& reader) {
  read_hunyuan(reader);
  const std::int64_t experts = same_in_all(reader, {"num_experts"}, 1), chosen = same_in_all(reader, {"moe_topk"}, 1);
  reader.set("experts", experts, "num_experts");
  reader.set("experts_per_token", chosen, "moe_topk");
  if (chosen > experts) reader.fail(reader.find({"moe_topk"}), "'moe_topk' is more than 'num_experts'");
  const std::int64_t width = same_in_all(reader, {"moe_intermediate_size"}, reader.setting("ffn_hidden"));
  reader.set("expert_ffn_hidden", width, "moe_intermediate_size");
  if (same_in_all(reader, {"num_shared_expert"}, 1) != 1)
    reader.refuse(reader.find({"num_shared_expert"}), "'num_shared_expert' is not 1, as in the code of this family");
  reader.set("shared_ffn_hidden", reader.setting("ffn_hidden"), "intermediate_size");
  if (reader.integer({"moe_layer_num_skipped"}, 0) > 0)
    reader.refuse(reader.find({"moe_layer_num_skipped"}), "'moe_layer_num_skipped' is above 0: not modelled");
  reader.find({"use_mixed_mlp_moe", "moe_drop_tokens", "moe_random_routing_dropped_token"});
}

constexpr std::string_view kNoDefaults = R"({"hidden_act": "silu", "tie_word_embeddings": false})";
constexpr std::string_view kHunyuanKeys = " cla_share_factor ";

}  // namespace

std::vector<Family> alike_families() {
  return {
      {"apertus", "ApertusConfig",
       R"({"vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "xielu", "tie_word_embeddings": false,
           "attention_bias": false, "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 12000000.0,
           "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                            "original_max_position_embeddings": 8192},
           "max_position_embeddings": 65536})",
       read_apertus},
      {"arcee", "ArceeConfig",
       R"({"vocab_size": 32000, "hidden_size": 2560, "intermediate_size": 18432, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "relu2", "tie_word_embeddings": false,
           "attention_bias": false, "mlp_bias": false, "head_dim": null, "rms_norm_eps": 1e-05,
           "initializer_range": 0.02, "rope_theta": 10000.0, "max_position_embeddings": 4096})",
       read_arcee},
      {"bailing_moe", "", kNoDefaults, read_bailing_moe},
      {"bailing_moe_v2", "", kNoDefaults, read_bailing_moe},
      {"ernie4_5", "Ernie4_5Config",
       R"({"vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18,
           "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "hidden_act": "silu",
           "tie_word_embeddings": true, "use_bias": false, "rms_norm_eps": 1e-05, "initializer_range": 0.02,
           "rope_theta": 500000.0, "max_position_embeddings": 131072})",
       read_ernie},
      {"ernie4_5_moe", "Ernie4_5_MoeConfig",
       R"({"vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28,
           "num_attention_heads": 20, "num_key_value_heads": 4, "hidden_act": "silu", "tie_word_embeddings": true,
           "use_bias": false, "moe_intermediate_size": 1536, "moe_k": 6, "moe_num_experts": 64,
           "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": -1,
           "moe_layer_interval": 1, "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 500000.0,
           "max_position_embeddings": 131072})",
       read_ernie_moe},
      {"granitemoe", "GraniteMoeConfig",
       R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "num_local_experts": 8, "num_experts_per_tok": 2, "rms_norm_eps": 1e-06,
           "initializer_range": 0.02, "rope_theta": 10000.0, "max_position_embeddings": 2048})",
       read_granite_moe},
      {"helium", "HeliumConfig",
       R"({"vocab_size": 48000, "hidden_size": 2560, "intermediate_size": 7040, "num_hidden_layers": 24,
           "num_attention_heads": 20, "num_key_value_heads": 20, "head_dim": 128, "hidden_act": "silu",
           "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "rms_norm_eps": 1e-08,
           "initializer_range": 0.02, "rope_theta": 100000.0, "max_position_embeddings": 4096})",
       read_helium},
      {"hunyuan_v1_dense", "", kNoDefaults, read_hunyuan, kHunyuanKeys},
      {"hunyuan_v1_moe", "HunYuanMoEV1Config",
       R"({"vocab_size": 290943, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "num_experts": 1, "moe_topk": 1, "rms_norm_eps": 1e-05,
           "initializer_range": 0.02, "rope_theta": 10000.0, "max_position_embeddings": 2048})",
       read_hunyuan_moe, kHunyuanKeys},
      {"internlm2", "", kNoDefaults, read_internlm},
      {"internlm3", "", kNoDefaults, read_internlm},
      {"minicpm", "", R"({"hidden_act": "silu", "tie_word_embeddings": true})", read_minicpm},
      {"olmo", "OlmoConfig",
       R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "initializer_range": 0.02, "rope_theta": 10000.0,
           "max_position_embeddings": 2048})",
       read_olmo},
      {"opt", "OPTConfig",
       R"({"vocab_size": 50272, "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12,
           "num_attention_heads": 12, "activation_function": "relu", "dropout": 0.1, "tie_word_embeddings": true,
           "max_position_embeddings": 2048})",
       read_opt},
      {"phimoe", "PhimoeConfig",
       R"({"vocab_size": 32064, "hidden_size": 4096, "intermediate_size": 6400, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu", "tie_word_embeddings": false,
           "sliding_window": null, "num_experts_per_tok": 2, "num_local_experts": 16, "attention_bias": false,
           "lm_head_bias": false, "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 1000000.0,
           "max_position_embeddings": 131072})",
       read_phimoe},
  };
}

}  // namespace manyworlds::experiments::models
