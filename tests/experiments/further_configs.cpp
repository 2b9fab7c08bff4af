// Families of Hugging Face configurations with attention beside the network, biases of scores, linear attention,
// windows with heads of their own, and further encoders: parameters of released models, and what is refused.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "experiments/models/read_model_config.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/catalog_models.hpp"
#include "tests/experiments/config_refusals.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using core::workload::active_parameters;
using core::workload::model_flops_per_sequence;
using core::workload::model_parameters;
using models::ModelConfig;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/models/";

ModelConfig parsed(const std::string& text) {
  return models::parse_model_config("{" + text + "}", "config.json");
}

std::int64_t total(const std::string& text) {
  return model_parameters(parsed(text).model());
}

std::string refusal(const std::string& text) {
  return testing::config_refusal("{" + text + "}");
}

void names(const std::string& text, const std::string& part) {
  const std::string said = refusal(text);
  CAPTURE(said);
  CHECK(said.find(part) != std::string::npos);
}

std::string architecture_of(const ModelConfig& config) {
  return std::get<std::string>(config.find("architecture")->value);
}

/// So many entries, of which every `period`-th is `last` and the others `first`.
std::string pattern(int count, int period, const std::string& first, const std::string& last) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", (i + 1) % period == 0 ? last : first);
  return "[" + text + "]";
}

constexpr const char* kMiniMax =
    R"("attention_dropout": 0.0, "head_dim": 128, "hidden_act": "silu", "hidden_size": 6144,
       "initializer_range": 0.02, "intermediate_size": 9216, "layernorm_full_attention_alpha": 3.5565588200778455,
       "layernorm_full_attention_beta": 1.0, "layernorm_linear_attention_alpha": 3.5565588200778455,
       "layernorm_linear_attention_beta": 1.0, "layernorm_mlp_alpha": 3.5565588200778455, "layernorm_mlp_beta": 1.0,
       "max_position_embeddings": 10240000, "num_attention_heads": 64, "num_experts_per_tok": 2,
       "num_hidden_layers": 80, "num_key_value_heads": 8, "num_local_experts": 32, "output_router_logits": false,
       "postnorm": true, "rms_norm_eps": 1e-05, "rope_theta": 10000000, "rotary_dim": 64,
       "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "shared_intermediate_size": 0,
       "shared_moe_mode": "sigmoid", "sliding_window": null, "tie_word_embeddings": false, "vocab_size": 200064)";

/// The text model of a Step 3.5 in the words of its files: five layers and two that predict further tokens.
constexpr const char* kStep =
    R"("architectures": ["Step3p5ForCausalLM"], "model_type": "step3p5", "hidden_size": 4096,
       "intermediate_size": 11264, "num_hidden_layers": 5, "max_position_embeddings": 262144, "vocab_size": 128896,
       "moe_layers_enum": "3,4", "num_attention_heads": 64, "num_attention_groups": 8, "head_dim": 128,
       "use_moe": true, "moe_num_experts": 288, "moe_top_k": 8, "moe_intermediate_size": 1280,
       "share_expert_dim": 1280, "norm_expert_weight": true, "moe_router_activation": "sigmoid",
       "moe_router_scaling_factor": 3.0, "att_impl_type": "GQA", "num_nextn_predict_layers": 2,
       "rope_theta": [5000000.0, 10000.0, 10000.0, 10000.0, 5000000.0, 10000.0, 10000.0], "max_seq_len": 262144,
       "yarn_only_types": ["full_attention"], "use_head_wise_attn_gate": true, "sliding_window": 512,
       "use_moe_router_bias": true, "need_fp32_gate": true, "swiglu_limits": [0.0, 0.0, 7, 7],
       "swiglu_limits_shared": [0.0, 0.0, 16, 16], "partial_rotary_factors": [0.5, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0],
       "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                       "full_attention", "sliding_attention", "sliding_attention"])";

}  // namespace

TEST_CASE("models with attention beside the network have the parameters that their checkpoints have") {
  // GPT-J-6B: 6,050,882,784 as its tensors are counted, with biases of the output layer. CodeGen-350M is the same
  // family.
  CHECK(total(R"("model_type": "gptj")") == 6'050'882'784 - 50'400);
  CHECK(total(R"("model_type": "codegen", "vocab_size": 51200, "n_embd": 1024, "n_layer": 20, "n_head": 16)") ==
        356'712'448 - 51'200);
  // 20,554,567,680: model card of EleutherAI/gpt-neox-20b. Pythia-70M: Biderman et al. 2023, table 1 (70,426,624).
  CHECK(total(R"("model_type": "gpt_neox")") == 20'554'567'680);
  CHECK(total(R"("model_type": "gpt_neox", "hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8,
                 "num_hidden_layers": 6, "vocab_size": 50304)") == 70'426'624);
  // Phi-2: 2,779,683,840 (safetensors), with biases of the output layer.
  CHECK(total(R"("model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32)") ==
        2'779'683'840 - 51'200);
  // Aya Expanse 8B, of Cohere's family: 8,028,033,024 (safetensors), as Command R7B has.
  const std::string small = R"("hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8)";
  CHECK(total(R"("model_type": "cohere", )" + small) == 8'028'033'024);
  CHECK(total(R"("model_type": "cohere2", "head_dim": 128, )" + small) == 8'028'033'024);
}

TEST_CASE("models with attention beside the network without an exact count have the sum of their tensors") {
  // Falcon-7B: one head of keys, one norm of two vectors; 7B (card: 6.92 B by its files).
  const std::int64_t width = 4'544,
                     falcon = 65'024 * width + 2 * width +
                              32 * (width * (width + 2 * 64) + width * width + 8 * width * width + 2 * width);
  CHECK(total(R"("model_type": "falcon")") == falcon);
  // Falcon-40B: eight heads of keys, two norms, 40B. Falcon2-11B says that there is one, and its widths.
  const std::int64_t h = 8'192;
  CHECK(total(R"("model_type": "falcon", "new_decoder_architecture": true, "hidden_size": 8192, "num_kv_heads": 8,
                 "num_hidden_layers": 60, "num_attention_heads": 128, "parallel_attn": true, "multi_query": true)") ==
        65'024 * h + 2 * h + 60 * (h * (h + 16 * 64) + h * h + 8 * h * h + 4 * h));
  CHECK(total(R"("model_type": "falcon", "new_decoder_architecture": true, "num_ln_in_parallel_attn": 1,
                 "hidden_size": 4096, "ffn_hidden_size": 16384, "num_kv_heads": 8, "num_hidden_layers": 60,
                 "num_attention_heads": 32, "tie_word_embeddings": false)") ==
        2 * 65'024 * 4'096LL + 8'192 + 60 * (4'096 * (4'096 + 2'048) + 4'096 * 4'096 + 8 * 4'096 * 4'096LL + 8'192));
  // Falcon-RW-1B has layers in a row with biases, and biases of scores.
  const ModelConfig row = parsed(R"("model_type": "falcon", "parallel_attn": false, "multi_query": false, "bias": true,
      "alibi": true, "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "vocab_size": 50304)");
  CHECK(model_parameters(row.model()) == 50'304 * 2'048LL + 4'096 + 24 * (12 * 2'048 * 2'048LL + (4 + 5 + 4) * 2'048));
  CHECK(row.find("architecture") == nullptr);
  // Command R: 35 B and Command R+: 104 B (their cards), with norms of each head of queries and keys.
  CHECK(total(R"("model_type": "cohere")") == 256'000 * h + h + 40 * (4 * h * h + 3 * h * 22'528 + h));
  const std::int64_t w = 12'288;
  CHECK(total(R"("model_type": "cohere", "hidden_size": 12288, "intermediate_size": 33792, "num_hidden_layers": 64,
                 "num_attention_heads": 96, "num_key_value_heads": 8, "use_qk_norm": true)") ==
        256'000 * w + w + 64 * (2 * w * w + w * 2 * 8 * 128 + 3 * w * 33'792 + w + (96 + 8) * 128));
  // StableLM 2 12B: 12.1 B (its card).
  const auto stable = total(R"("model_type": "stablelm", "hidden_size": 5120, "intermediate_size": 13824,
      "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 100352,
      "use_parallel_residual": true, "qk_layernorm": true)");
  CHECK(stable == 2 * 100'352 * 5'120LL + 10'240 +
                      40 * (2 * 5'120 * 5'120 + 2 * 5'120 * 8 * 160 + 3 * 5'120 * 13'824LL + 10'240 + 40 * 160));
  CHECK(static_cast<double>(stable) == Approx(12.1e9).epsilon(0.005));
}

TEST_CASE("layers of Command R7B have a window and rotary positions, or neither") {
  // The keys of its released file.
  const ModelConfig config = parsed(R"("architectures": ["Cohere2ForCausalLM"], "attention_bias": false,
      "attention_dropout": 0.0, "bos_token_id": 5, "cache_implementation": "hybrid", "eos_token_id": 255001,
      "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
      "intermediate_size": 14336, "layer_norm_eps": 1e-05, "layer_switch": 4, "logit_scale": 0.25,
      "max_position_embeddings": 8192, "model_type": "cohere2", "num_attention_heads": 32, "num_hidden_layers": 32,
      "num_key_value_heads": 8, "order_of_interleaved_layers": "local_attn_first", "pad_token_id": 0,
      "position_embedding_type": "rope_gptj", "rope_scaling": null, "rope_theta": 50000, "rotary_pct": 1.0,
      "sliding_window": 4096, "sliding_window_pattern": 4, "use_cache": true, "use_embedding_sharing": true,
      "use_gated_activation": true, "use_parallel_block": true, "use_parallel_embedding": false,
      "vocab_size": 256000)");
  CHECK(architecture_of(config).find(R"("of": ["windowed", "windowed", "windowed", "full"])") != std::string::npos);
  names(R"("model_type": "cohere2", "use_parallel_block": false)", "'use_parallel_block' is false");
  names(R"("model_type": "phi", "qk_layernorm": true)", "'qk_layernorm' is true");
  names(R"("model_type": "falcon", "num_ln_in_parallel_attn": 3)", "'num_ln_in_parallel_attn' must be 1 or 2");
  names(R"("model_type": "falcon", "num_attention_heads": 70)", "no multiple of 'num_attention_heads', 70");
}

TEST_CASE("earlier decoders have the parameters that their checkpoints have") {
  // BLOOM: 176,247,271,424 (safetensors). Baichuan-7B: 7,000,559,616. GPT-Neo 1.3B: 1,315,575,808 by its tensors, with
  // the biases of attention's output.
  const ModelConfig bloom = parsed(R"("model_type": "bloom", "n_embed": 14336, "n_layer": 70,
      "num_attention_heads": 112, "attention_softmax_in_fp32": true, "pretraining_tp": 4, "slow_but_exact": false,
      "unk_token_id": 0, "bias_dropout_fusion": true, "masked_softmax_fusion": true, "skip_bias_add": true,
      "seq_length": 2048)");
  CHECK(model_parameters(bloom.model()) == 176'247'271'424);
  CHECK(bloom.model().position == core::workload::Position::none);
  const std::string baichuan = R"("model_type": "baichuan", "num_hidden_layers": 32, "num_attention_heads": 32,
      "intermediate_size": 11008, "model_max_length": 4096, "z_loss_weight": 0, "vocab_size": 64000, "hidden_size": )";
  CHECK(total(baichuan + "4096") == 7'000'559'616);
  CHECK(parsed(baichuan + "4096").model().position == core::workload::Position::rotary);
  CHECK(parsed(baichuan + "5120").model().position == core::workload::Position::none);
  CHECK(total(R"("model_type": "gpt_neo")") == 1'315'575'808 - 24 * 2'048);
  const std::string alternating = R"("layers": [{"repeat": 12, "of": ["full", "windowed"]}])";
  CHECK(architecture_of(parsed(R"("model_type": "gpt_neo")")).find(alternating) != std::string::npos);
  CHECK(architecture_of(
            parsed(R"("model_type": "gpt_neo", "attention_layers": )" + pattern(24, 2, "\"global\"", "\"local\"")))
            .find(alternating) != std::string::npos);
  // DBRX: 132 B, 36 B active (its card), with the keys of its file; MPT-7B: 6.65 B by its tensors.
  const ModelConfig dbrx = parsed(R"("model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40,
      "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": "", "rope_theta": 500000}, "emb_pdrop": 0.0,
      "ffn_config": {"ffn_hidden_size": 10752, "model_type": "", "moe_jitter_eps": 0.01, "moe_loss_weight": 0.05,
                     "moe_num_experts": 16, "moe_top_k": 4}, "max_seq_len": 32768, "resid_pdrop": 0.0,
      "router_aux_loss_coef": 0.05, "vocab_size": 100352)");
  const std::int64_t expert = 3 * 6'144 * 10'752LL;
  CHECK(model_parameters(dbrx.model()) ==
        2 * 100'352 * 6'144LL + 6'144 +
            40 * (6'144 * (6'144 + 2 * 1'024) + 6'144 * 6'144 + 16 * expert + 16 * 6'144 + 2 * 6'144));
  CHECK(static_cast<double>(model_parameters(dbrx.model())) == Approx(132e9).epsilon(0.005));
  CHECK(static_cast<double>(active_parameters(dbrx.model())) == Approx(36e9).epsilon(0.02));
  const std::string mpt = R"("model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "no_bias": true,
      "expansion_ratio": 4, "init_device": "cpu", "learned_pos_emb": true, "embedding_fraction": 1.0,
      "norm_type": "low_precision_layernorm", "max_seq_len": 2048, "vocab_size": 50432,
      "attn_config": {"alibi": true, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0,
      "attn_type": "multihead_attention", "attn_uses_sequence_id": false, "clip_qkv": null, "prefix_lm": false,
      "softmax_scale": null, "qk_ln": )";
  CHECK(total(mpt + "false}") == 50'432 * 4'096LL + 32 * (12 * 4'096 * 4'096LL + 2 * 4'096) + 4'096);
  CHECK(parsed(mpt + "false}").sequence == 2'048);
  names(mpt + "true}", "'qk_ln' is true");
  names(R"("model_type": "dbrx", "n_heads": 15)", "'d_model' is 2048, no multiple of 'n_heads', 15");
  names(R"("model_type": "dbrx", "ffn_config": {"moe_shared_experts": 2})",
        "'moe_shared_experts' of 'ffn_config' is not known");
  names(R"("model_type": "gpt_neo", "attention_types": [[["global", "mamba"], 12]])", "known are global and local");
  names(R"("model_type": "bloom", "apply_residual_connection_post_layernorm": true)",
        "'apply_residual_connection_post_layernorm' is true");
  // Arcee: no gate, of the sizes that its class has.
  CHECK(total(R"("model_type": "arcee")") ==
        2 * 32'000 * 2'560LL + 2'560 + 32 * (4 * 2'560 * 2'560 + 2 * 2'560 * 18'432LL + 2 * 2'560));
}

TEST_CASE("MiniMax-Text-01 is read with linear attention as the catalog has it") {
  // 456,089,655,296 by its files; M1 is of the same sizes.
  static const Catalog catalog;
  core::workload::Model known = testing::catalog_model(catalog, "minimax-text-01");
  for (const char* family : {"minimax_text_01", "minimax_m1"}) {
    ModelConfig config = parsed(
        fmt::format(R"("model_type": "{}", {}, "attn_type_list": {})", family, kMiniMax, pattern(80, 8, "0", "1")));
    CHECK(model_parameters(config.model()) == 456'089'655'296);
    config.sequence = known.sequence;
    CHECK(model_flops_per_sequence(config.model()) == model_flops_per_sequence(known));
  }
  CHECK(total(fmt::format(R"("model_type": "minimax", {}, "block_size": 256, "layer_types": {})", kMiniMax,
                          pattern(80, 8, "\"linear_attention\"", "\"full_attention\""))) == 456'089'655'296);
  names(fmt::format(R"("model_type": "minimax_text_01", {})", kMiniMax), "'attn_type_list' is missing");
  names(fmt::format(R"("model_type": "minimax_text_01", {}, "attn_type_list": [0, 1])", kMiniMax), "has 2 entries");
}

TEST_CASE("LFM2 is read with short convolutions, and a network of the width that its class makes of the file's") {
  // LFM2-1.2B: 1,170,340,608, with the keys of its file; LFM2-8B-A1B: 8,339,929,856 and a number for each expert, 704.
  const std::string dense = R"("architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "block_dim": 2048,
      "block_ff_dim": 12288, "block_ffn_dim_multiplier": 1.0, "block_mlp_init_scale": 1.0, "block_multiple_of": 256,
      "block_norm_eps": 1e-05, "block_out_init_scale": 1.0, "block_use_swiglu": true, "block_use_xavier_init": true,
      "conv_L_cache": 3, "conv_bias": false, "conv_dim": 2048, "conv_dim_out": 2048, "conv_use_xavier_init": true,
      "hidden_size": 2048, "initializer_range": 0.02, "max_position_embeddings": 128000, "norm_eps": 1e-05,
      "num_attention_heads": 32, "num_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
      "rope_theta": 1000000.0, "tie_embedding": true, "use_cache": true, "use_pos_enc": true, "vocab_size": 65536,
      "full_attn_idxs": [2, 5, 8, 10, 12, 14], "block_auto_adjust_ff_dim": )";
  CHECK(total(dense + "true") == 1'170'340'608);
  CHECK(total(dense + "false") == 1'170'340'608 + 16 * 3 * 2'048LL * (12'288 - 8'192));
  const std::string routed = R"("model_type": "lfm2_moe", "num_hidden_layers": 24, "full_attn_idxs": )";
  CHECK(total(routed + "[2, 6, 10, 14, 18, 21]") == 8'339'929'856 + 704);
  names(routed + "[24]", "'full_attn_idxs'");
  names(R"("model_type": "lfm2", "conv_bias": true)", "'conv_bias' is true");
}

TEST_CASE("MiMo-V2-Flash is read with values narrower than keys, and more heads of keys where windows are") {
  // 309 B, 15 B active (its card), and the sum of its tensors.
  const ModelConfig mimo = models::read_model_config(kFolder + "XiaomiMiMo--MiMo-V2-Flash.json");
  const std::int64_t w = 4'096, ends = 64 * 192 + 64 * 128;
  const std::int64_t full = w * (ends + 4 * (192 + 128)), windowed = w * (ends + 8 * (192 + 128)) + 64;
  const std::int64_t sum = 2 * 152'576 * w + w + 48 * 2 * w + 9 * full + 39 * windowed + 3 * w * 16'384 +
                           47 * (256 * 3 * w * 2'048 + 256 * w + 256);
  CHECK(model_parameters(mimo.model()) == sum);
  CHECK(static_cast<double>(sum) == Approx(309e9).epsilon(0.005));
  CHECK(static_cast<double>(active_parameters(mimo.model())) == Approx(15e9).epsilon(0.04));
  static const Catalog catalog;
  ModelConfig config = mimo;
  const core::workload::Model known = testing::catalog_model(catalog, "mimo-v2-flash");
  config.sequence = known.sequence;
  CHECK(model_parameters(known) == sum);
  CHECK(model_flops_per_sequence(config.model()) == model_flops_per_sequence(known));
}

TEST_CASE("Step 3.5 is read in the words of its files, which list layers behind the model's own") {
  const std::string other = R"(, "attention_other_setting": {"attention_type": "sliding_attention",
      "num_attention_heads": 96, "num_attention_groups": 8, "head_dim": 128})";
  const ModelConfig step = parsed(kStep + other);
  const std::int64_t w = 4'096;
  const auto attention = [&](std::int64_t heads) {
    return w * (2 * heads * 128 + 2 * 8 * 128) + w * heads + 2 * 128 + 2 * w;
  };
  const std::int64_t experts = 289 * 3 * w * 1'280 + 288 * (w + 1);
  CHECK(model_parameters(step.model()) ==
        2 * 128'896 * w + w + 2 * attention(64) + 3 * attention(96) + 3 * 3 * w * 11'264 + 2 * experts);
  names(kStep, "'attention_other_setting' with 'num_attention_heads' is missing");
  std::string text = kStep + other;
  text.replace(text.find("\"3,4\""), 5, "\"3,x\"");
  names(text, "'moe_layers_enum' must name layers from 0 to 4");
}

TEST_CASE("files of quantised relatives are read with the keys that they have besides") {
  // Nemotron-H 56B says how wide a head is in a word of its own: 56 B, as the catalog has it.
  static const Catalog catalog;
  const ModelConfig nemotron = models::read_model_config(kFolder + "nvidia--Nemotron-H-56B-Base-8K.json");
  CHECK(model_parameters(nemotron.model()) == model_parameters(testing::catalog_model(catalog, "nemotron-h-56b")));
  // Newer files of DeepSeek-V3.2's relatives (GLM-5.2) name the attention of every layer, which is the same in all.
  const std::string file = kFolder + "deepseek-ai--DeepSeek-V3.2.json";
  const auto listing = [&](const std::string& type) {
    std::string text = import::read_text(file);
    return text.replace(text.find('{'), 1, fmt::format("{{\"layer_types\": {},", pattern(61, 1, "", type)));
  };
  CHECK(model_parameters(models::parse_model_config(listing("\"deepseek_sparse_attention\""), "config.json").model()) ==
        model_parameters(models::read_model_config(file).model()));
  CHECK(testing::config_refusal(listing("\"linear_attention\"")).find("known are deepseek_sparse_attention") !=
        std::string::npos);
}

TEST_CASE("the language models of GLM-4.5V and ERNIE 4.5 are read with the keys of their files") {
  CHECK(refusal(R"("model_type": "ernie4_5_moe", "use_rmsnorm": true, "moe_capacity": [64, 64, 64],
      "moe_gate": "topk", "moe_use_aux_free": true, "num_nextn_predict_layers": 1)") == "(no error)");
  names(R"("model_type": "ernie4_5", "use_rmsnorm": false)", "'use_rmsnorm' is false");
  // GLM-4.5V: 106 B, 12 B active (its card), without the tower.
  const std::string file = R"({"model_type": "glm4v_moe", "vision_config": {"hidden_size": 1536, "depth": 24},
      "text_config": {"model_type": "glm4v_moe_text", "vocab_size": 151552, "head_dim": 128, "attention_bias": true,
      "first_k_dense_replace": 1, "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408,
      "n_group": 1, "n_routed_experts": 128, "n_shared_experts": 1, "norm_topk_prob": true,
      "num_attention_heads": 96, "num_experts_per_tok": 8, "num_hidden_layers": 46, "num_key_value_heads": 8,
      "partial_rotary_factor": 0.5, "topk_group": 1, "use_qk_norm": false, "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "default", "mrope_section": [8, 12, 12]}}})";
  CHECK(testing::config_refusal(file).find("the language model alone is config.json#text_config") != std::string::npos);
  const auto text = models::parse_model_config(file, "config.json", "text_config").model();
  const std::int64_t w = 4'096, attention = w * (2 * 96 * 128 + 2 * 8 * 128) + 2 * w;
  CHECK(model_parameters(text) ==
        2 * 151'552 * w + w + 46 * attention + 3 * w * 10'944 + 45 * (129 * 3 * w * 1'408 + 128 * w));
  CHECK(static_cast<double>(model_parameters(text)) == Approx(106e9).epsilon(0.01));
}

TEST_CASE("DistilBERT, ModernBERT, ELECTRA and BART are read with the head that they are trained with") {
  // DistilBERT: 66,362,880 without a head, to which come a layer, a norm and, left out here, biases of words.
  CHECK(total(R"("model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"], "tie_weights_": true)") ==
        66'362'880 + 768 * 769 + 2 * 768);
  CHECK(total(R"("model_type": "distilbert", "architectures": ["DistilBertForSequenceClassification"])") ==
        66'362'880 + 768 * 769 + 2 * 769);
  // ModernBERT-base: 149,014,272 without a head, whose layer has no biases, and the keys of its file.
  const std::string modern = R"("architectures": ["ModernBertForMaskedLM"], "attention_bias": false,
      "attention_dropout": 0.0, "classifier_activation": "gelu", "classifier_bias": false, "classifier_dropout": 0.0,
      "classifier_pooling": "mean", "cls_token_id": 50281, "decoder_bias": true, "deterministic_flash_attn": false,
      "embedding_dropout": 0.0, "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0,
      "gradient_checkpointing": false, "hidden_activation": "gelu", "hidden_size": 768,
      "initializer_cutoff_factor": 2.0, "intermediate_size": 1152, "layer_norm_eps": 1e-05, "local_attention": 128,
      "local_rope_theta": 10000.0, "max_position_embeddings": 8192, "mlp_bias": false, "mlp_dropout": 0.0,
      "model_type": "modernbert", "norm_bias": false, "norm_eps": 1e-05, "num_attention_heads": 12,
      "num_hidden_layers": 22, "position_embedding_type": "absolute", "sep_token_id": 50282,
      "tie_word_embeddings": true, "vocab_size": 50368)";
  CHECK(total(modern) == 149'014'272 + 768 * 768 + 768);
  CHECK(architecture_of(parsed(modern)).find(R"("window": 129)") != std::string::npos);
  names(R"("model_type": "modernbert", "mlp_bias": true)", "'mlp_bias' is true");
  // ELECTRA-base: 108,891,648 without a head, of which 1,536 are segments.
  const std::string electra = R"("model_type": "electra", "embedding_size": 768, "hidden_size": 768,
      "num_attention_heads": 12, "intermediate_size": 3072, "architectures": )";
  CHECK(total(electra + R"(["ElectraForSequenceClassification"])") == 108'891'648 - 1'536 + 768 * 769 + 2 * 769);
  names(electra + R"(["ElectraForPreTraining"])", "which words a generator has replaced");
  names(R"("model_type": "electra", "architectures": ["ElectraForSequenceClassification"])",
        "'embedding_size' is not 'hidden_size'");
  // BART-base: 139,420,416, of which two rows of each table of positions are left out.
  const std::string bart = R"("model_type": "bart", "architectures": ["BartModel"], "d_model": 768,
      "encoder_layers": 6, "encoder_ffn_dim": 3072, "encoder_attention_heads": 12, "decoder_layers": 6,
      "decoder_ffn_dim": 3072, "decoder_attention_heads": 12, "is_encoder_decoder": true, "normalize_before": false,
      "normalize_embedding": true, "add_final_layer_norm": false, "scale_embedding": false, "num_hidden_layers": 6)";
  CHECK(total(bart) == 139'420'416 - 2 * 2 * 768);
  names(R"("model_type": "bart", "normalize_before": true)", "'normalize_before' is true");
}

TEST_CASE("umT5 has a table of relative positions in each layer") {
  const std::string sizes = R"("vocab_size": 250112, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8,
      "num_heads": 6, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false, "model_type": )";
  CHECK(total(sizes + "\"umt5\"") == total(sizes + "\"mt5\""));
  const auto tables = [&](const std::string& family) {
    for (const models::ConfigNote& note : parsed(sizes + family).left_out)
      if (note.key == "relative_attention_num_buckets") return note.text;
    return std::string();
  };
  CHECK(tables("\"mt5\"").find("one of each stack") != std::string::npos);
  CHECK(tables("\"umt5\"").find("one of each layer") != std::string::npos);
  CHECK(tables("\"umt5\"").find("3.072 k parameters") != std::string::npos);  // 16 layers x 32 x 6
}

TEST_CASE("families that cannot be modelled are refused by what they have") {
  names(R"("model_type": "gemma3n_text", "num_kv_shared_layers": 15)", "several residual streams (AltUp)");
  names(R"("model_type": "gemma4_text", "layer_types": ["sliding_attention", "sliding_attention", "full_attention"])",
        "keys that are values, too");
  CHECK(refusal(R"("model_type": "gemma4_text", "layer_types": ["sliding_attention", "full_attention"])")
            .find("one of so many") == std::string::npos);
  names(R"("model_type": "deberta-v2")", "disentangled attention");
  names(R"("model_type": "rwkv")", "recurrent layers");
  names(R"("model_type": "falcon_mamba")", "Mamba-1 layers");
  names(R"("model_type": "zamba2")", "whose weights several layers share");
}
