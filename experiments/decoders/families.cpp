// Defaults are those of the classes in transformers/models/*/configuration_*.py (Hugging Face, versions 4.57 to 5): of
// Gemma 2, Llama 4 and Qwen3-Next at commit 008e574, of Gemma 3 and BERT at 008f5c8, Mamba-2 f2a39d4, T5 038869d, ViT
// 04ae757, CLIP 01841b3, Llava and mT5 053f59e, SigLIP 091ffff, DeepSeek-V4 015c078, GPT-BigCode
// 05ff2e9.
#include "experiments/decoders/families.hpp"

#include <algorithm>

#include "experiments/decoders/decoder_parts.hpp"

namespace manyworlds::experiments::models {
namespace {

void read_dense(ConfigReader& reader, FeedForward kind) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, kind);
  read_window(reader);
}

void read_attention_biases(ConfigReader& reader) {
  const bool biased = reader.flag({"attention_bias"}, false);
  read_biases(reader, {biased, biased, biased && reader.flag({"mlp_bias"}, false)}, "attention_bias");
}

void read_llama(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  const bool attention = reader.flag({"attention_bias"}, false), mlp = reader.flag({"mlp_bias"}, false);
  read_biases(reader, {attention, attention, mlp}, attention ? "attention_bias" : "mlp_bias");
}

void read_mistral(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  read_biases(reader, {}, "");
}

void read_mixtral(ConfigReader& reader) {
  read_mistral(reader);
  read_mixtral_experts(reader);
}

void read_qwen2(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  read_biases(reader, {.queries_keys_values = reader.flag({"qkv_bias", "attention_bias"}, true)}, "attention_bias");
}

void read_qwen2_moe(ConfigReader& reader) {
  read_qwen2(reader);
  read_qwen_experts(reader);
  reader.take_if_set("shared_ffn_hidden", {"shared_expert_intermediate_size"});
  if (reader.setting("shared_ffn_hidden") > 0)
    reader.leave_out({"shared_expert_gate", "the gate of the shared expert, one output",
                      reader.setting("layers") * reader.setting("hidden")});
}

void read_qwen3(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  read_attention_biases(reader);
  reader.set("query_key_norm", reader.flag({"use_qk_norm"}, true), "use_qk_norm");
}

void read_qwen3_moe(ConfigReader& reader) {
  read_qwen3(reader);
  read_qwen_experts(reader);
}

/// The first DeepSeek-MoE and relatives: grouped heads, and experts as in DeepSeek-V2.
void read_deepseek_grouped(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  read_attention_biases(reader);
  read_deepseek_experts(reader);
  leave_out_next_tokens(reader);
}

void read_glm4_moe(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  read_biases(reader, {.queries_keys_values = reader.flag({"attention_bias"}, false)}, "attention_bias");
  reader.set("query_key_norm", reader.flag({"use_qk_norm"}, false), "use_qk_norm");
  read_deepseek_experts(reader);
  leave_out_next_tokens(reader);
}

void read_dots(ConfigReader& reader) {
  read_deepseek_grouped(reader);
  reader.set("query_key_norm", true);
}

void read_glm(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  read_biases(reader, {.queries_keys_values = reader.flag({"attention_bias"}, true)}, "attention_bias");
}

/// Attention has sinks: one learned number for each head, beside the scores.
void read_gpt_oss(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  const FoundKey types = reader.find({"layer_types"});
  read_window(reader);
  if (!types.is_set() && reader.setting("window") > 0) reader.set("window_every", std::int64_t{2});
  if (const FoundKey bias = reader.find({"attention_bias"}); !reader.flag({"attention_bias"}, true))
    reader.refuse(bias, "'attention_bias' is false: experts with biases beside attention without are not modelled");
  reader.set("biases", true, "attention_bias");
  read_mixtral_experts(reader);
  reader.leave_out(
      {"sinks", "attention sinks, one number for each head", reader.setting("layers") * reader.setting("heads")});
}

/// Norms stand behind attention and feed-forward network instead of before: as many, over the same values.
void read_olmo2(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  read_attention_biases(reader);
  reader.set("query_key_norm", true);
  reader.note("norms",
              "one norm over all heads of queries and of keys, and norms behind attention and feed-forward "
              "network instead of before: the same bytes");
}

void read_olmoe(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  read_attention_biases(reader);
  reader.set("query_key_norm", true);
  const Keys experts{"num_experts", "num_local_experts"};
  reader.take("experts", experts);
  reader.take("experts_per_token", {"num_experts_per_tok"});
  reader.note("norms", "one norm over all heads of queries and of keys: the same bytes");
}

void read_gemma(ConfigReader& reader) {
  read_llama(reader);
}

void read_granite(ConfigReader& reader) {
  read_llama(reader);
  for (const char* key : {"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"})
    if (reader.find({key}).is_set()) reader.note(key, "a factor inside of kernels");
}

void read_starcoder2(ConfigReader& reader) {
  read_dense(reader, FeedForward::plain);
  reader.set("norm", "layer_norm");
  if (const FoundKey norm = reader.find({"norm_type"}); reader.text({"norm_type"}, "layer_norm") != "layer_norm")
    reader.refuse(norm, fmt::format("'norm_type' is '{}': this norm is not modelled", norm.value->text));
  if (const FoundKey mlp = reader.find({"mlp_type"}); reader.text({"mlp_type"}, "default") != "default")
    reader.refuse(mlp, fmt::format("'mlp_type' is '{}': this feed-forward network is not modelled", mlp.value->text));
  const bool biased = reader.flag({"use_bias"}, true);
  read_biases(reader, {biased, biased, biased}, "use_bias");
}

void read_nemotron(ConfigReader& reader) {
  read_dense(reader, FeedForward::plain);
  reader.set("norm", "layer_norm");
  const bool attention = reader.flag({"attention_bias"}, false), mlp = reader.flag({"mlp_bias"}, false);
  read_biases(reader, {attention, attention, mlp}, attention ? "attention_bias" : "mlp_bias");
}

void read_seed_oss(ConfigReader& reader) {
  read_dense(reader, FeedForward::gated);
  read_biases(reader,
              {reader.flag({"attention_bias"}, true), reader.flag({"attention_out_bias"}, false),
               reader.flag({"mlp_bias"}, false)},
              "attention_bias");
}

void read_gpt2(ConfigReader& reader) {
  read_gpt2_sizes(reader, "learned", 0.1);
}

/// All heads of queries may share one of keys and values.
void read_gpt_bigcode(ConfigReader& reader) {
  read_gpt2(reader);
  reader.find({"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "pre_allocate_kv_cache"});
  if (!reader.flag({"multi_query"}, true)) return;
  std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "kv_heads"; });
  reader.set("kv_heads", std::int64_t{1}, "multi_query");
}

/// Families whose layers are alike.
std::vector<Family> plain_families() {
  return {
      {"deepseek", "", R"({"tie_word_embeddings": false, "hidden_act": "silu"})", read_deepseek_grouped},
      {"deepseek_v2", "DeepseekV2Config",
       R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "first_k_dense_replace": 0, "kv_lora_rank": 512, "q_lora_rank": 1536, "n_routed_experts": 64,
           "n_shared_experts": 2, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
           "moe_intermediate_size": 1407, "rms_norm_eps": 1e-06, "initializer_range": 0.02, "rope_theta": 10000.0,
           "norm_topk_prob": false, "topk_method": "greedy", "max_position_embeddings": 2048})",
       read_latent_decoder},
      {"deepseek_v3", "DeepseekV3Config",
       R"({"vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
           "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_shared_experts": 1,
           "n_routed_experts": 256, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
           "v_head_dim": 128, "qk_nope_head_dim": 128, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
           "hidden_act": "silu", "tie_word_embeddings": false, "rms_norm_eps": 1e-06, "initializer_range": 0.02,
           "rope_theta": 10000.0, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "n_group": 8,
           "topk_group": 4, "max_position_embeddings": 4096})",
       read_latent_decoder},
      {"dots1", "", R"({"tie_word_embeddings": false, "hidden_act": "silu"})", read_dots},
      {"gemma", "GemmaConfig",
       R"({"vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
           "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
           "tie_word_embeddings": true, "attention_bias": false, "rms_norm_eps": 1e-06, "initializer_range": 0.02,
           "rope_theta": 10000.0, "max_position_embeddings": 8192})",
       read_gemma},
      {"glm", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_glm},
      {"glm4_moe", "Glm4MoeConfig",
       R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46,
           "num_attention_heads": 96, "num_key_value_heads": 8, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "moe_intermediate_size": 1408, "num_experts_per_tok": 8, "n_shared_experts": 1,
           "n_routed_experts": 128, "first_k_dense_replace": 1, "use_qk_norm": false, "rms_norm_eps": 1e-05,
           "initializer_range": 0.02, "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "norm_topk_prob": true,
           "max_position_embeddings": 131072})",
       read_glm4_moe},
      {"glm4v_moe_text", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_glm4_moe},
      {"glm4_moe_lite", "Glm4MoeLiteConfig",
       R"({"vocab_size": 154880, "hidden_size": 2048, "intermediate_size": 10240, "moe_intermediate_size": 1536,
           "num_hidden_layers": 47, "num_attention_heads": 20, "num_key_value_heads": 20, "n_shared_experts": 1,
           "n_routed_experts": 64, "kv_lora_rank": 512, "q_lora_rank": 768, "qk_rope_head_dim": 64, "v_head_dim": 256,
           "qk_nope_head_dim": 192, "num_experts_per_tok": 4, "first_k_dense_replace": 1, "hidden_act": "silu",
           "tie_word_embeddings": false, "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 10000.0,
           "norm_topk_prob": true, "routed_scaling_factor": 1.8, "max_position_embeddings": 202752})",
       read_latent_decoder},
      {"gpt2", "GPT2Config",
       R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": null,
           "tie_word_embeddings": true, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02})",
       read_gpt2},
      {"gpt_bigcode", "GPTBigCodeConfig",
       R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": null,
           "tie_word_embeddings": true, "multi_query": true, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02})",
       read_gpt_bigcode},
      {"gpt_oss", "GptOssConfig",
       R"({"num_hidden_layers": 36, "num_local_experts": 128, "vocab_size": 201088, "hidden_size": 2880,
           "intermediate_size": 2880, "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
           "sliding_window": 128, "tie_word_embeddings": false, "hidden_act": "silu", "num_experts_per_tok": 4,
           "attention_bias": true, "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 150000.0,
           "rope_scaling": {"rope_type": "yarn"}, "swiglu_limit": 7.0, "max_position_embeddings": 131072})",
       read_gpt_oss},
      {"granite", "GraniteConfig",
       R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "mlp_bias": false, "rms_norm_eps": 1e-06, "initializer_range": 0.02,
           "rope_theta": 10000.0, "max_position_embeddings": 2048})",
       read_granite},
      {"kimi_k2", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_latent_decoder},
      {"llama", "LlamaConfig",
       R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "mlp_bias": false, "head_dim": null, "rms_norm_eps": 1e-06,
           "initializer_range": 0.02, "rope_theta": 10000.0, "max_position_embeddings": 2048})",
       read_llama},
      {"ministral3", "", R"({"hidden_act": "silu", "sliding_window": null})", read_mistral},
      {"mistral", "MistralConfig",
       R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": null, "hidden_act": "silu",
           "tie_word_embeddings": false, "sliding_window": 4096, "rms_norm_eps": 1e-06, "initializer_range": 0.02,
           "rope_theta": 10000.0, "max_position_embeddings": 131072})",
       read_mistral},
      {"mixtral", "MixtralConfig",
       R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": null, "hidden_act": "silu",
           "tie_word_embeddings": false, "sliding_window": null, "num_experts_per_tok": 2, "num_local_experts": 8,
           "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 1000000.0,
           "max_position_embeddings": 131072})",
       read_mixtral},
      {"nemotron", "NemotronConfig",
       R"({"vocab_size": 256000, "hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 32,
           "num_attention_heads": 48, "head_dim": null, "num_key_value_heads": null, "hidden_act": "relu2",
           "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "norm_eps": 1e-05,
           "initializer_range": 0.0134, "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
           "max_position_embeddings": 4096})",
       read_nemotron},
      {"olmo2", "Olmo2Config",
       R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 10000.0,
           "max_position_embeddings": 2048})",
       read_olmo2},
      {"olmoe", "OlmoeConfig",
       R"({"vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16,
           "num_attention_heads": 16, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "num_experts_per_tok": 8, "num_experts": 64, "attention_bias": false, "rms_norm_eps": 1e-05,
           "initializer_range": 0.02, "rope_theta": 10000.0, "norm_topk_prob": false,
           "max_position_embeddings": 4096})",
       read_olmoe},
      {"phi3", "Phi3Config",
       R"({"vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "sliding_window": null, "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 10000.0,
           "max_position_embeddings": 4096})",
       read_mistral},
      {"qwen2", "Qwen2Config",
       R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 32, "hidden_act": "silu", "tie_word_embeddings": false,
           "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, "rms_norm_eps": 1e-06,
           "initializer_range": 0.02, "rope_theta": 10000.0, "max_position_embeddings": 32768})",
       read_qwen2},
      {"qwen2_moe", "Qwen2MoeConfig",
       R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
           "num_attention_heads": 16, "num_key_value_heads": 16, "hidden_act": "silu", "tie_word_embeddings": false,
           "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, "decoder_sparse_step": 1,
           "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4,
           "num_experts": 60, "qkv_bias": true, "rms_norm_eps": 1e-06, "initializer_range": 0.02,
           "rope_theta": 10000.0, "norm_topk_prob": false, "max_position_embeddings": 32768})",
       read_qwen2_moe},
      {"qwen3", "Qwen3Config",
       R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "hidden_act": "silu",
           "tie_word_embeddings": false, "attention_bias": false, "use_sliding_window": false, "sliding_window": 4096,
           "max_window_layers": 28, "rms_norm_eps": 1e-06, "initializer_range": 0.02, "rope_theta": 10000.0,
           "max_position_embeddings": 32768})",
       read_qwen3},
      {"qwen3_moe", "Qwen3MoeConfig",
       R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
           "num_attention_heads": 32, "num_key_value_heads": 4, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "use_sliding_window": false, "sliding_window": 4096, "decoder_sparse_step": 1,
           "moe_intermediate_size": 768, "num_experts_per_tok": 8, "num_experts": 128, "rms_norm_eps": 1e-06,
           "initializer_range": 0.02, "rope_theta": 10000.0, "norm_topk_prob": false,
           "max_position_embeddings": 32768})",
       read_qwen3_moe},
      {"qwen3_vl_moe_text", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_qwen3_moe},
      {"qwen3_vl_text", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_qwen3},
      {"seed_oss", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_seed_oss},
      {"starcoder2", "Starcoder2Config",
       R"({"vocab_size": 49152, "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30,
           "num_attention_heads": 24, "num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh",
           "sliding_window": null, "use_bias": true, "tie_word_embeddings": true, "norm_epsilon": 1e-05,
           "initializer_range": 0.018042, "rope_theta": 10000.0, "max_position_embeddings": 4096})",
       read_starcoder2},
  };
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> sorted = [] {
    std::vector<Family> all = plain_families();
    for (const std::vector<Family>& more :
         {alike_families(), parallel_families(), earlier_families(), audio_families(), encoder_families(),
          text_encoder_families(), mixer_families(), linear_mixer_families(), mixed_families(), window_families(),
          sparse_families()})
      all.insert(all.end(), more.begin(), more.end());
    std::sort(all.begin(), all.end(), [](const Family& a, const Family& b) { return a.type < b.type; });
    return all;
  }();
  return sorted;
}

}  // namespace manyworlds::experiments::models
