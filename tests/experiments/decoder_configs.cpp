// Families of decoders read from Hugging Face configurations: parameters of released models, and what is refused.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/model/architecture.hpp"
#include "experiments/models/read_model_config.hpp"
#include "tests/experiments/config_refusals.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using core::workload::active_parameters;
using core::workload::model_parameters;
using models::ModelConfig;

namespace {

ModelConfig parsed(const std::string& text) {
  return models::parse_model_config("{" + text + "}", "config.json");
}

std::int64_t parameters(const std::string& text) {
  return model_parameters(parsed(text).model());
}

std::string refusal(const std::string& text) {
  return testing::config_refusal("{" + text + "}");
}

std::string list_of(const std::string& item, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += (text.empty() ? "" : ", ") + item;
  return "[" + text + "]";
}

/// So many layers, of which those of `attention` are called so and the others mamba.
std::string hybrid_types(int layers, const std::vector<int>& attention) {
  std::string text;
  for (int layer = 0; layer < layers; ++layer) {
    const bool found = std::find(attention.begin(), attention.end(), layer) != attention.end();
    text += fmt::format("{}\"{}\"", layer > 0 ? ", " : "", found ? "attention" : "mamba");
  }
  return "[" + text + "]";
}

constexpr const char* kGraniteSmall =
    R"("model_type": "granitemoehybrid", "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32,
       "num_key_value_heads": 8, "num_local_experts": 72, "num_experts_per_tok": 10, "shared_intermediate_size": 1536,
       "intermediate_size": 768, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_n_heads": 128,
       "mamba_d_head": 64, "mamba_n_groups": 1, "position_embedding_type": "nope", "normalization_function": "rmsnorm",
       "embedding_multiplier": 12, "tie_word_embeddings": true, "vocab_size": 100352, "layer_types": )";

constexpr const char* kLingMini =
    R"("model_type": "bailing_moe", "num_hidden_layers": 20, "hidden_size": 2048, "intermediate_size": 5120,
       "first_k_dense_replace": 1, "moe_intermediate_size": 512, "moe_shared_expert_intermediate_size": 512,
       "num_shared_experts": 1, "num_experts": 256, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
       "norm_topk_prob": true, "routed_scaling_factor": 2.5, "score_function": "sigmoid",
       "moe_router_enable_expert_bias": true, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
       "use_qk_norm": true, "use_qkv_bias": false, "partial_rotary_factor": 0.5, "rope_theta": 600000,
       "vocab_size": 157184)";

constexpr const char* kHunyuanMoe =
    R"("model_type": "hunyuan_v1_moe", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
       "head_dim": 128, "attention_head_dim": 128, "intermediate_size": 3072, "vocab_size": 128167,
       "tie_word_embeddings": true, "num_experts": 64, "use_cla": false, "cla_share_factor": 2, "norm_type": "rms",
       "dense_list": [4096, 0], "use_qk_norm": true, "num_hidden_layers": 32)";

constexpr const char* kExaone =
    R"("model_type": "exaone4", "hidden_size": 5120, "intermediate_size": 27392, "num_hidden_layers": 64,
       "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 102400,
       "sliding_window_pattern": )";

}  // namespace

TEST_CASE("released dense decoders have the parameters that their checkpoints have") {
  // Weights of the checkpoints as their safetensors files count them (SmolLM3-3B, OLMo-3-7B, GLM-4-9B-0414,
  // InternLM2-7B, ERNIE-4.5-0.3B, Apertus-8B, StarCoder, MiniCPM-2B, OPT-125M), or as the model card has them
  // (StableLM-3B-4E1T: 2,795,443,200).
  CHECK(parameters(R"("model_type": "smollm3")") == 3'075'098'624);
  CHECK(parameters(R"("model_type": "olmo3", "vocab_size": 100278)") == 7'298'011'136);
  CHECK(parameters(R"("model_type": "glm4")") == 9'400'279'040);
  CHECK(parameters(R"("model_type": "ernie4_5")") == 360'748'032);
  CHECK(parameters(R"("model_type": "stablelm")") == 2'795'443'200);
  CHECK(parameters(R"("model_type": "internlm2", "hidden_size": 4096, "num_hidden_layers": 32, "bias": false,
                      "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
                      "vocab_size": 92544)") == 7'737'708'544);
  CHECK(parameters(R"("model_type": "minicpm", "hidden_size": 2304, "num_hidden_layers": 40, "scale_emb": 12,
                      "intermediate_size": 5760, "num_attention_heads": 36, "num_key_value_heads": 36,
                      "dim_model_base": 256, "vocab_size": 122753)") == 2'724'880'896);
  CHECK(parameters(R"("model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576,
                      "n_positions": 8192, "vocab_size": 49152)") == 15'517'456'384);
  // The language model of Ministral-3-3B.
  CHECK(parameters(R"("model_type": "ministral3", "hidden_size": 3072, "num_hidden_layers": 26,
                      "intermediate_size": 9216, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                      "vocab_size": 131072, "tie_word_embeddings": true, "sliding_window": null,
                      "rope_parameters": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0,
                      "llama_4_scaling_beta": 0.1, "mscale": 1.0, "mscale_all_dim": 1.0, "rope_theta": 1000000.0,
                      "original_max_position_embeddings": 16384, "rope_type": "yarn", "type": "yarn"})") ==
        3'429'006'336);
  // Without two numbers of the activation function in each layer, and two rows of the table of positions.
  CHECK(parameters(R"("model_type": "apertus", "intermediate_size": 21504, "num_key_value_heads": 8, "qk_norm": true,
                      "post_norm": false)") == 8'053'338'176 - 2 * 32);
  CHECK(parameters(R"("model_type": "opt")") == 125'239'296 - 2 * 768);
  // OLMo-7B has no weights in its 65 norms, which are counted here.
  CHECK(parameters(R"("model_type": "olmo")") == 6'888'095'744 + 65 * 4'096);
}

TEST_CASE("dense decoders without a published count have the sum of their tensors") {
  // helium-1-preview: two tables of 48,000 x 2,560; in each of 24 layers four matrices of attention, three of the
  // network, two norms.
  CHECK(parameters(R"("model_type": "helium")") ==
        2 * 48'000 * 2'560LL + 24 * (4 * 2'560 * 2'560 + 3 * 2'560 * 7'040 + 2 * 2'560) + 2'560);
  // Of InternLM3 the widths of the 8B model; biases of queries, keys and values are left out and told.
  const std::string later = R"("model_type": "internlm3", "hidden_size": 4096, "num_hidden_layers": 48,
      "intermediate_size": 10240, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
      "vocab_size": 128512, "bias": false, "qkv_bias": )";
  const std::int64_t sum =
      2 * 128'512 * 4'096LL + 4'096 + 48 * (2 * 4'096 * 4'096 + 2 * 4'096 * 256 + 3 * 4'096 * 10'240 + 2 * 4'096LL);
  CHECK(parameters(later + "false") == sum);
  CHECK(parameters(later + "true") == sum);
  CHECK(parsed(later + "true").left_out.size() == 1);
  // Hunyuan 7B, with norms of queries and keys.
  CHECK(parameters(R"("model_type": "hunyuan_v1_dense", "hidden_size": 4096, "intermediate_size": 14336,
                      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "head_dim": 128,
                      "attention_head_dim": 128, "cla_share_factor": 2, "use_cla": false, "dense_list": [4096, 0],
                      "mlp_bias": false, "norm_type": "rms", "use_qk_norm": true, "vocab_size": 128167,
                      "tie_word_embeddings": true, "rope_scaling": {"alpha": 1000.0, "type": "dynamic"})") ==
        128'167 * 4'096LL + 4'096 +
            32 * (2 * 4'096 * 4'096 + 2 * 4'096 * 1'024 + 3 * 4'096 * 14'336 + 2 * 4'096LL + 2 * 128));
}

TEST_CASE("released decoders with experts have the parameters that their checkpoints have") {
  // Ling-mini-2.0 and granite-3.0-1b-a400m as their safetensors files count them; Ling-lite-1.5 16.8 B (its card).
  CHECK(parameters(kLingMini) == 16'255'643'392);
  CHECK(parsed(kLingMini).model().expert_groups == 8);
  CHECK(parsed(kLingMini).model().groups_per_token == 4);
  CHECK(parameters(R"("model_type": "granitemoe", "hidden_size": 1024, "intermediate_size": 512,
                      "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 8,
                      "vocab_size": 49155, "num_local_experts": 32, "num_experts_per_tok": 8,
                      "tie_word_embeddings": true)") == 1'334'628'352);
  const auto lite = parameters(R"("model_type": "bailing_moe", "first_k_dense_replace": 0, "hidden_size": 2048,
      "intermediate_size": 1408, "moe_intermediate_size": 1408, "num_experts": 64, "num_shared_experts": 2,
      "norm_topk_prob": true, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 28,
      "num_key_value_heads": 4, "use_bias": false, "use_qkv_bias": false, "vocab_size": 126464, "norm_head": false,
      "norm_softmax": false, "embedding_dropout": 0.0, "output_dropout": 0.0, "tie_word_embeddings": false)");
  CHECK(static_cast<double>(lite) == Approx(16.8e9).epsilon(0.0015));
  // ERNIE-4.5-21B-A3B: the first of 28 layers has no experts, the others 64 and two shared ones, and a number for each.
  const std::int64_t attention = 2 * 2'560 * 20 * 128 + 2 * 2'560 * 4 * 128 + 2 * 2'560, expert = 3 * 2'560 * 1'536;
  CHECK(parameters(R"("model_type": "ernie4_5_moe")") ==
        103'424 * 2'560LL + 2'560 + 28 * attention + 3 * 2'560 * 12'288LL + 27 * (66 * expert + 64 * (2'560 + 1)));
  // Phi-3.5-MoE, without biases of attention and of the output layer: 42 B, 6.6 B active (its card).
  const ModelConfig phi = parsed(R"("model_type": "phimoe", "attention_bias": true, "lm_head_bias": true)");
  CHECK(phi.left_out.size() == 2);
  CHECK(static_cast<double>(model_parameters(phi.model())) == Approx(41.9e9).epsilon(0.0015));
  CHECK(static_cast<double>(active_parameters(phi.model())) == Approx(6.6e9).epsilon(0.01));
  // Hunyuan-A13B: 80 B, 13 B active (its card), and the sum of its tensors.
  const ModelConfig hunyuan =
      parsed(std::string(kHunyuanMoe) + R"(, "moe_topk": )" + list_of("8", 32) + R"(, "moe_intermediate_size": )" +
             list_of("3072", 32) + R"(, "num_shared_expert": )" + list_of("1", 32));
  CHECK(model_parameters(hunyuan.model()) ==
        128'167 * 4'096LL + 4'096 +
            32 * (2 * 4'096 * 4'096 + 2 * 4'096 * 1'024 + 2 * 128 + 65 * 3 * 4'096 * 3'072LL + 64 * 4'096 + 2 * 4'096));
  CHECK(static_cast<double>(model_parameters(hunyuan.model())) == Approx(80e9).epsilon(0.01));
  CHECK(static_cast<double>(active_parameters(hunyuan.model())) == Approx(13e9).epsilon(0.05));
}

TEST_CASE("released hybrids of Mamba-2 and attention have the parameters that their checkpoints have") {
  // granite-4.0-h-small as its files count it, with attention in four of 40 layers; Bamba-9B 9.78 B (its card).
  const std::string types = hybrid_types(40, {5, 15, 25, 35});
  CHECK(parameters(kGraniteSmall + types) == 32'207'337'984);
  CHECK(static_cast<double>(parameters(R"("model_type": "bamba", "vocab_size": 128256, "mamba_d_state": 128,
      "attn_layer_indices": [9, 18, 27], "attn_rotary_emb": 64)")) == Approx(9.78e9).epsilon(0.0015));
  // granite-4.0-micro, of the same family, has attention alone and no experts (3,402,836,480 in its files).
  CHECK(parameters(R"("model_type": "granitemoehybrid", "hidden_size": 2560, "num_hidden_layers": 40,
      "num_attention_heads": 40, "num_key_value_heads": 8, "num_local_experts": 0, "num_experts_per_tok": 0,
      "shared_intermediate_size": 8192, "intermediate_size": 8192, "position_embedding_type": "rope",
      "vocab_size": 100352, "tie_word_embeddings": true, "mamba_n_heads": 128, "layer_types": )" +
                   list_of("\"attention\"", 40)) == 3'402'836'480);
  // Without experts the shared network is alone, as wide as it says; heads may be as wide as they must be.
  std::string dense = kGraniteSmall + types;
  dense.replace(dense.find("\"num_local_experts\": 72"), 23, "\"num_local_experts\": 0 ");
  dense.replace(dense.find("\"mamba_d_head\": 64"), 18, "\"mamba_d_head\": \"auto\"");
  CHECK(parameters(kGraniteSmall + types) - parameters(dense) == 40 * (72 * 3 * 4'096 * 768LL + 72 * 4'096));
  CHECK(refusal(std::string(kGraniteSmall) + hybrid_types(39, {})).find("has 39 entries") != std::string::npos);
  dense.replace(dense.find("\"mamba_d_head\": \"auto\""), 22, "\"mamba_d_head\": 32");
  CHECK(refusal(dense).find("'mamba_expand' times 'hidden_size' is 8192") != std::string::npos);
  CHECK(refusal(R"("model_type": "bamba", "mamba_proj_bias": true)").find("'mamba_proj_bias' is true") !=
        std::string::npos);
  CHECK(refusal(R"("model_type": "bamba", "attn_layer_indices": [32])").find("'attn_layer_indices'") !=
        std::string::npos);
}

TEST_CASE("layers of EXAONE 4 and SmolLM3 have windows and rotary positions where their files say") {
  // 30.95 B without the tables (its card).
  CHECK(static_cast<double>(parameters(std::string(kExaone) + "\"LLLG\"") - 2 * 102'400 * 5'120LL) ==
        Approx(30.95e9).epsilon(0.0005));
  const auto text = [](const std::string& config) {
    return std::get<std::string>(parsed(config).find("architecture")->value);
  };
  const std::string repeated =
      R"("layers": [{"repeat": 16, "of": ["windowed", "windowed", "windowed", "full_unrotated"]}])";
  for (const char* pattern : {"\"LLLG\"", "4"})
    CHECK(text(std::string(kExaone) + pattern).find(repeated) != std::string::npos);
  // Without a window all layers are rotated.
  const std::string none = text(std::string(kExaone) + R"(null, "sliding_window": null)");
  CHECK(none.find(R"("layers": [{"repeat": 64, "of": ["full"]}])") != std::string::npos);
  const std::string smol = text(R"("model_type": "smollm3")");
  CHECK(smol.find(R"("layers": [{"repeat": 9, "of": ["full", "full", "full", "full_unrotated"]}])") !=
        std::string::npos);
  CHECK(text(R"("model_type": "smollm3", "no_rope_layers": )" + list_of("1", 36)).find("unrotated") ==
        std::string::npos);
  CHECK(text(R"("model_type": "olmo3")").find(R"("of": ["windowed", "windowed", "windowed", "full"])") !=
        std::string::npos);
  CHECK(refusal(R"("model_type": "exaone4", "num_hidden_layers": 2, "layer_types": ["full_attention", "mamba"])")
            .find("known are sliding_attention and full_attention") != std::string::npos);
}

TEST_CASE("what these families may have and is not modelled is refused by its key") {
  const auto names = [](const std::string& config, const std::string& part) {
    const std::string said = refusal(config);
    CAPTURE(said);
    CHECK(said.find(part) != std::string::npos);
  };
  names(R"("model_type": "opt", "do_layer_norm_before": false)", "'do_layer_norm_before' is false");
  names(R"("model_type": "opt", "word_embed_proj_dim": 512)", "'word_embed_proj_dim'");
  names(R"("model_type": "ernie4_5_moe", "moe_layer_interval": 2)", "'moe_layer_interval' is not 1");
  names(R"("model_type": "ernie4_5_moe", "moe_layer_end_index": 20)", "'moe_layer_end_index'");
  names(std::string(kHunyuanMoe) + R"(, "moe_topk": [8, 4])", "'moe_topk' has 2 entries");
  std::string shared = kHunyuanMoe;
  shared.replace(shared.find("\"use_cla\": false"), 16, "\"use_cla\": true");
  names(shared + R"(, "moe_topk": 8)", "'use_cla' is true: keys and values that several layers share");
  names(R"("model_type": "apertus", "post_norm": true)", "'post_norm' is true");
  names(std::string(kLingMini) + R"(, "norm_head": true)", "'norm_head' is true");
  for (const char* family : {"albert", "deberta-v2", "kimi_linear", "longcat_flash", "jamba"})
    names(fmt::format("\"model_type\": \"{}\"", family), fmt::format("'model_type' is '{}': ", family));
}

TEST_CASE("files of these families are read with all of their keys") {
  // What a released file has beside the sizes: SmolLM3-3B, EXAONE-4.0-32B, Granite 4 (a small one) and Ling-mini-2.0.
  CHECK(refusal(R"("architectures": ["SmolLM3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
      "bos_token_id": null, "eos_token_id": 128012, "hidden_act": "silu", "hidden_size": 2048,
      "initializer_range": 0.02, "intermediate_size": 11008, "max_position_embeddings": 65536, "max_window_layers": 28,
      "mlp_bias": false, "model_type": "smollm3", "no_rope_layer_interval": 4, "num_attention_heads": 16,
      "num_hidden_layers": 36, "num_key_value_heads": 4, "pretraining_tp": 2, "rms_norm_eps": 1e-06,
      "rope_scaling": null, "rope_theta": 5000000.0, "sliding_window": null, "torch_dtype": "bfloat16",
      "use_cache": false, "use_sliding_window": false, "vocab_size": 128256, "layer_types": )" +
                list_of("\"full_attention\"", 36)) == "(no error)");
  CHECK(refusal(std::string(kExaone) + R"("LLLG", "attention_dropout": 0.0, "initializer_range": 0.02,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 1000000, "sliding_window": 4096,
      "rope_scaling": {"factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "rope_type": "llama3",
      "original_max_position_embeddings": 8192}, "tie_word_embeddings": false)") == "(no error)");
  CHECK(refusal(std::string(kGraniteSmall) + hybrid_types(40, {5, 15, 25, 35}) + R"(, "attention_bias": false,
      "attention_dropout": 0.0, "attention_multiplier": 0.015625, "hidden_act": "silu", "initializer_range": 0.1,
      "logits_scaling": 16, "mamba_chunk_size": 256, "mamba_conv_bias": true, "mamba_proj_bias": false,
      "output_router_logits": false, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null,
      "rope_theta": 10000, "router_aux_loss_coef": 0.0, "init_method": "mup")") == "(no error)");
  CHECK(refusal(std::string(kLingMini) + R"(, "attention_dropout": 0.0, "embedding_dropout": 0.0,
      "hidden_act": "silu", "initializer_range": 0.02, "max_position_embeddings": 32768, "num_nextn_predict_layers": 0,
      "output_dropout": 0.0, "output_router_logits": false, "pad_token_id": 156892, "rms_norm_eps": 1e-06,
      "rope_scaling": null, "router_dtype": "fp32", "use_bias": false, "use_cache": true, "use_rmsnorm": true,
      "norm_head": false, "norm_softmax": false)") == "(no error)");
}
