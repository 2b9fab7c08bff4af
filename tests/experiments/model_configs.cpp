// Models read from Hugging Face configurations: parameters as published, layers that are refused, and what a mistake
// says.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/models/read_model_config.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/config_refusals.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using core::workload::active_parameters;
using core::workload::model_parameters;
using experiments::testing::config_refusal;
using models::ModelConfig;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/models/";

ModelConfig parsed(const std::string& text) {
  return models::parse_model_config(text, "config.json");
}

std::int64_t parameters(const std::string& text) {
  return model_parameters(parsed(text).model());
}

std::string refusal_of_file(const std::string& name) {
  return config_refusal(import::read_text(kFolder + name + ".json"), name + ".json");
}

bool has_note(const std::vector<models::ConfigNote>& notes, const std::string& key, const std::string& part) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const auto& note) { return note.key == key && note.text.find(part) != std::string::npos; });
}

struct Published {
  std::string file;
  double total_billions, active_billions;
  double active_rounding = 0;  // half of the last printed digit
  bool without_table = false;  // the table at the entrance is not counted as active
};

}  // namespace

TEST_CASE("parameters of published configurations are those of their cards") {
  // Model cards; gpt-oss: OpenAI 2025 (arXiv 2508.10925), table 1, which counts the output layer as active but not the
  // embedding, as DeepSeek and Moonshot do with 37 B and 32 B; Kimi K2: the parameters of its checkpoint.
  const std::vector<Published> all{{"Qwen--Qwen3-0.6B", 0.596, 0.596},
                                   {"Qwen--Qwen3-30B-A3B", 30.53, 3.35},
                                   {"meta-llama--Meta-Llama-3.1-8B", 8.03, 8.03},
                                   {"mistralai--Mixtral-8x7B-v0.1", 46.7, 12.9},
                                   {"deepseek-ai--DeepSeek-V3", 671, 37, 0.5, true},
                                   {"moonshotai--Kimi-K2-Instruct", 1026.47, 32, 0.5, true},
                                   {"openai--gpt-oss-20b", 20.91, 3.61, 0.005, true},
                                   {"MiniMaxAI--MiniMax-M2.7", 230, 10, 0.5, true}};
  for (const Published& one : all) {
    CAPTURE(one.file);
    const core::workload::Model model = models::read_model_config(kFolder + one.file + ".json").model();
    const std::int64_t table = one.without_table ? model.vocabulary * model.hidden : 0;
    CHECK(static_cast<double>(model_parameters(model)) == Approx(1e9 * one.total_billions).epsilon(0.01));
    const double rounding = std::max(0.01 * one.active_billions, one.active_rounding);
    CHECK(static_cast<double>(active_parameters(model) - table) / 1e9 == Approx(one.active_billions).margin(rounding));
  }
}

TEST_CASE("attention to selected keys is read with its index, which layers of GLM-5.2 share") {
  // 685,396,921,376 weights of the released files, less multi-token prediction (docs/facts/architectures.md).
  const auto total = [](const ModelConfig& config) { return static_cast<double>(model_parameters(config.model())); };
  CHECK(total(models::read_model_config(kFolder + "deepseek-ai--DeepSeek-V3.2.json")) ==
        Approx(671'919'535'648.0).epsilon(0.0002));
  const std::string glm = R"({"model_type": "glm_moe_dsa", "hidden_size": 6144, "num_hidden_layers": 8,
    "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 154880, "intermediate_size": 12288,
    "q_lora_rank": 2048, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1,
    "first_k_dense_replace": 3, "index_topk": 2048, "index_n_heads": 32, "index_head_dim": 128)";
  const std::string types = R"(, "indexer_types": ["full", "full", "full", "shared", "shared", "shared", "full",)";
  // An index has wq_b, wk, weights_proj and a norm: 9,371,904 weights a layer of GLM-5.
  CHECK(total(parsed(glm + "}")) - total(parsed(glm + types + R"( "shared"]})")) == 4 * 9'371'904.0);
  CHECK(config_refusal(glm + types + R"( "none"]})").find("known are full and shared") != std::string::npos);
  CHECK(config_refusal(glm + R"(, "index_topk_freq": 4})").find("'indexer_types'") != std::string::npos);
}

TEST_CASE("what a file does not say is the default of its family") {
  // Parameters of Llama-2-7b, GPT-2 and Gemma-2b as their checkpoints have them.
  CHECK(parameters(R"({"model_type": "llama"})") == 6'738'415'616);
  CHECK(parameters(R"({"model_type": "gpt2"})") == 124'439'808);
  CHECK(parameters(R"({"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18,
                       "num_attention_heads": 8, "num_key_value_heads": 1})") == 2'506'172'416);
  const ModelConfig llama = parsed("{\"model_type\": \"llama\",\n \"hidden_size\": 4096}");
  CHECK(llama.find("hidden")->line == 2);
  CHECK_FALSE(llama.find("hidden")->assumed);
  CHECK(llama.find("layers")->assumed);
  CHECK(llama.find("layers")->key == "num_hidden_layers");
  CHECK(models::summary(llama).find("num_hidden_layers=32") != std::string::npos);
  CHECK(models::summary(llama).find("LlamaConfig") != std::string::npos);
}

TEST_CASE("what is carried into jobs and a file lacks is the default of its class, and told as such") {
  const auto carried = [](const ModelConfig& config) { return models::carried_text(config.carried); };
  const auto assumed = [](const ModelConfig& config) {
    std::string keys;
    for (const models::ConfigNote& note : config.carried_defaults) keys += note.key + "=" + note.text + " ";
    return keys;
  };
  // LlamaConfig, MixtralConfig, NemotronConfig, Qwen3MoeConfig, DeepseekV3Config, GptOssConfig and GPT2Config in
  // transformers/models/*/configuration_*.py.
  const ModelConfig llama = parsed(R"({"model_type": "llama"})");
  CHECK(carried(llama) == "init-method-std=0.02 max-position-embeddings=2048 norm-epsilon=1e-06 rotary-base=10000");
  CHECK(assumed(llama) == "rms_norm_eps=1e-06 initializer_range=0.02 max_position_embeddings=2048 rope_theta=10000.0 ");
  CHECK(models::summary(llama).find("rms_norm_eps=1e-06 and initializer_range=0.02 and "
                                    "max_position_embeddings=2048 and rope_theta=10000.0 of "
                                    "LlamaConfig") != std::string::npos);
  CHECK(carried(parsed(R"({"model_type": "mixtral"})")) ==
        "init-method-std=0.02 max-position-embeddings=131072 norm-epsilon=1e-05 rotary-base=1000000");
  CHECK(carried(parsed(R"({"model_type": "nemotron"})")) ==
        "init-method-std=0.0134 max-position-embeddings=4096 norm-epsilon=1e-05 rotary-base=10000 rotary-percent=0.5");
  CHECK(
      carried(parsed(R"({"model_type": "qwen3_moe"})")) ==
      "init-method-std=0.02 max-position-embeddings=32768 moe-router-pre-softmax norm-epsilon=1e-06 rotary-base=10000");
  CHECK(carried(parsed(R"({"model_type": "deepseek_v3"})")) ==
        "init-method-std=0.02 max-position-embeddings=4096 moe-router-topk-scaling-factor=2.5 norm-epsilon=1e-06 "
        "rope-type=rope rotary-base=10000");
  CHECK(carried(parsed(R"({"model_type": "gpt_oss"})")) ==
        "activation-func-clamp-value=7.0 config.rope_scaling=yarn init-method-std=0.02 max-position-embeddings=131072 "
        "norm-epsilon=1e-05 "
        "rotary-base=150000");
  // Gemma2Config, Gemma3TextConfig, Llama4TextConfig, Mamba2Config, Qwen3NextConfig, BertConfig, T5Config,
  // CLIPTextConfig.
  CHECK(carried(parsed(R"({"model_type": "gemma2"})")) ==
        "init-method-std=0.02 max-position-embeddings=8192 norm-epsilon=1e-06 rotary-base=10000");
  CHECK(carried(parsed(R"({"model_type": "gemma3_text"})")) ==
        "init-method-std=0.02 max-position-embeddings=131072 norm-epsilon=1e-06 rotary-base=1000000");
  CHECK(carried(parsed(R"({"model_type": "llama4_text"})")) ==
        "init-method-std=0.02 max-position-embeddings=131072 norm-epsilon=1e-05 rotary-base=500000");
  CHECK(carried(parsed(R"({"model_type": "mamba2"})")) == "init-method-std=0.1 norm-epsilon=1e-05");
  CHECK(carried(parsed(R"({"model_type": "qwen3_next"})")) ==
        "init-method-std=0.02 max-position-embeddings=32768 norm-epsilon=1e-06 rotary-base=10000 rotary-percent=0.25");
  CHECK(carried(parsed(R"({"model_type": "bert"})")) ==
        "init-method-std=0.02 max-position-embeddings=512 norm-epsilon=1e-12");
  CHECK(carried(parsed(R"({"model_type": "t5"})")) == "norm-epsilon=1e-06");
  CHECK(carried(parsed(R"({"model_type": "gpt2"})")) ==
        "init-method-std=0.02 max-position-embeddings=1024 norm-epsilon=1e-05");
  // What the file says counts, under whichever name and wherever it stands; a null of the file is no default.
  const ModelConfig said = parsed(R"({"model_type": "llama", "norm_eps": 1e-4, "initializer_range": 0.01,
      "rope_parameters": {"rope_type": "default", "rope_theta": 250000}})");
  CHECK(carried(said) == "init-method-std=0.01 max-position-embeddings=2048 norm-epsilon=1e-4 rotary-base=250000");
  CHECK(assumed(said) == "max_position_embeddings=2048 ");
  CHECK(carried(parsed(R"({"model_type": "gpt_oss", "rope_scaling": null, "swiglu_limit": null})")) ==
        "init-method-std=0.02 max-position-embeddings=131072 norm-epsilon=1e-05 rotary-base=150000");
  CHECK(carried(parsed(R"({"model_type": "qwen3_moe", "norm_topk_prob": true})")) ==
        "init-method-std=0.02 max-position-embeddings=32768 norm-epsilon=1e-06 rotary-base=10000");
}

TEST_CASE("biases of some projections and layers that predict further tokens are left out and counted") {
  // Qwen2.5-7B has 7,615,616,512 parameters.
  const ModelConfig qwen = parsed(R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
      "tie_word_embeddings": false})");
  const std::int64_t biases = 28 * (28 + 2 * 4) * 128;
  CHECK(model_parameters(qwen.model()) + biases == 7'615'616'512);
  CHECK(has_note(qwen.left_out, "attention_bias", "queries, keys and values (129 k parameters, 0.0017 %)"));
  const ModelConfig mimo = models::read_model_config(kFolder + "XiaomiMiMo--MiMo-7B-Base.json");
  CHECK(has_note(mimo.left_out, "num_nextn_predict_layers",
                 "1 layer for multi-token prediction, which model.mtp_layers=1 adds (210.8 M"));
  // Its checkpoint, which has that layer, holds 7.83 B.
  core::workload::Model predicting = mimo.model();
  predicting.mtp_layers = 1;
  CHECK(static_cast<double>(model_parameters(predicting)) == Approx(7.83e9).epsilon(0.002));
}

TEST_CASE("what a checkpoint is stored in changes nothing and is told") {
  const ModelConfig plain = parsed(R"({"model_type": "llama"})");
  const ModelConfig stored = parsed(R"({"model_type": "llama", "quantization_config": {"quant_method": "fp8"}})");
  CHECK(model_parameters(plain.model()) == model_parameters(stored.model()));
  CHECK(has_note(stored.without_effect, "quantization_config", "strategy.stack.precision"));
  CHECK(models::summary(stored).find("unchanged by quantization_config") != std::string::npos);
}

TEST_CASE("layers that cannot be modelled are named with their key") {
  const auto names = [](const std::string& file, const std::vector<std::string>& parts) {
    const std::string said = refusal_of_file(file);
    CAPTURE(said);
    for (const std::string& part : parts) CHECK(said.find(part) != std::string::npos);
    CHECK(said.substr(0, said.find('\n')).size() < 200);
  };
  const std::string several = config_refusal("{\"model_type\": \"jamba\", \"mamba_d_state\": 16,\n\"alibi\": true}");
  CHECK(several.find("of its settings") != std::string::npos);
  CHECK(several.find("'model_type' is 'jamba': Mamba-1 layers") != std::string::npos);
  CHECK(several.find("line 2: 'alibi'") != std::string::npos);
  names("stepfun-ai--Step-3.7-Flash-FP8", {"'attention_other_setting' with 'num_attention_heads' is missing"});
  CHECK(config_refusal(R"({"model_type": "falcon_h1"})").find("side by side") != std::string::npos);
  CHECK(config_refusal(R"({"model_type": "qwen3_moe", "mlp_only_layers": [3]})").find("'mlp_only_layers'") !=
        std::string::npos);
  CHECK(config_refusal(R"({"model_type": "qwen3_moe", "decoder_sparse_step": 2})").find("'decoder_sparse_step' is 2") !=
        std::string::npos);
}

TEST_CASE("a model is called as its folder or its file") {
  const auto name = [](const std::string& file) {
    return models::parse_model_config(R"({"model_type": "llama"})", file).name;
  };
  CHECK(name("/models/Llama-2-7b/config.json") == "Llama-2-7b");
  CHECK(name("/x/meta-llama--Llama-2-7b_config.json") == "meta-llama--Llama-2-7b");
  CHECK(name("hub/models--meta-llama--Llama-2-7b/snapshots/8cca527612d856d7d/config.json") == "meta-llama--Llama-2-7b");
  CHECK(name("/x/our model: v2/config.json") == "our-model--v2");
  CHECK(name("/config.json") == "model");
}

TEST_CASE("a member of a document is read alone") {
  const ModelConfig text = models::read_model_config(kFolder + "Qwen--Qwen3-VL-2B-Instruct.json#text_config");
  CHECK(static_cast<double>(model_parameters(text.model())) == Approx(1.72e9).epsilon(0.001));  // as Qwen3-1.7B
  CHECK(has_note(text.left_out, "text_config", "all of the document but"));
  CHECK(config_refusal("{}", "c.json", "text_config") == "c.json: has no 'text_config'");
}

TEST_CASE("windows in all layers, or in one of so many, are those of the file") {
  const auto model = [](const std::string& more) {
    return parsed(R"({"model_type": "mistral", "num_hidden_layers": 4, )" + more + "}").model();
  };
  CHECK(model(R"("sliding_window": null)").window == 0);
  CHECK(model(R"("sliding_window": 1024)").window == 1024);
  CHECK(model(R"("sliding_window": 1024)").window_every == 1);
  CHECK(model(R"("vocab_size": 32000)").window == 4096);  // the family's default
  const auto alternating = model(
      R"("sliding_window": 128,
         "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"])");
  CHECK(alternating.window == 128);
  CHECK(alternating.window_every == 2);
  CHECK(model(R"("layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"])").window ==
        0);
  CHECK(config_refusal(R"({"model_type": "mistral", "num_hidden_layers": 4, "layer_types": ["full_attention"]})") ==
        "config.json:1: 'layer_types' has 1 entries, and 'num_hidden_layers' is 4");
}

TEST_CASE("a misspelt key of a configuration is refused with the one that is meant, other unknown ones are told") {
  const auto said = [](const std::string& line, const std::string& type = "llama") {
    return config_refusal("{\"model_type\": \"" + type + "\",\n" + line + "}");
  };
  for (const auto& [typed, meant] : {std::pair("rope_teta", "rope_theta"),
                                     {"rms_norm_epsi", "rms_norm_eps"},
                                     {"tie_word_embedding", "tie_word_embeddings"},
                                     {"num_hiden_layers", "num_hidden_layers"},
                                     {"vocab_sise", "vocab_size"},
                                     {"rope_scalling", "rope_scaling"},
                                     {"hiddne_size", "hidden_size"}}) {
    INFO(typed);
    CHECK(said(fmt::format("\"{}\": 4", typed)) ==
          fmt::format("config.json:2: '{}' is not known of a llama; did you mean '{}'? Take it out if it is something "
                      "else",
                      typed, meant));
  }
  // A value that says nothing where nothing is meant says something of the key that is.
  CHECK(said("\"tie_word_embedding\": false", "gemma").find("did you mean 'tie_word_embeddings'?") !=
        std::string::npos);
  CHECK(said("\"rope_scaling\": {\"rope_type\": \"linear\", \"factro\": 2.0}") ==
        "config.json:2: 'factro' is not known of 'rope_scaling'; did you mean 'factor'? Take it out if it is something "
        "else");
  CHECK(said("\"rope_scaling\": {\"rope_type\": \"yarn\", \"attention_factor\": 1.0}") == "(no error)");
  CHECK(has_note(parsed(R"({"model_type": "llama", "our_tag": "x"})").without_effect, "our_tag", "not known"));
  CHECK(said("\"pad_tokn\": 3") == "(no error)");  // near one that does not count
}

TEST_CASE("no key of a published configuration is taken for a misspelling") {
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path().string());
    CHECK(refusal_of_file(entry.path().stem().string()).find("did you mean") == std::string::npos);
    ++read;
  }
  CHECK(read >= 16);
}

TEST_CASE("a mistake in a configuration is one line with its file, line and key") {
  const auto said = [](const std::string& line) {
    return config_refusal("{\"model_type\": \"llama\",\n" + line + "}");
  };
  CHECK(said("\"num_hidden_layers\": 1e308") ==
        "config.json:2: 'num_hidden_layers' must be an integer from 1 to 10000, not '1e308'");
  CHECK(said("\"num_hidden_layers\": -3") ==
        "config.json:2: 'num_hidden_layers' must be an integer from 1 to 10000, not -3");
  CHECK(said("\"hidden_size\": \"4096\"").find("config.json:2: 'hidden_size' must be an integer") == 0);
  CHECK(said("\"hidden_size\": null").find("config.json:2: 'hidden_size' is null") == 0);
  CHECK(said("\"num_attention_heads\": 33").find("no multiple of 'num_attention_heads', 33") != std::string::npos);
  CHECK(said("\"num_key_value_heads\": 5").find("config.json:2: 'num_key_value_heads' is 5, which does not divide") ==
        0);
  CHECK(said("\"hidden_act\": \"maxout\"").find("config.json:2: 'hidden_act' is 'maxout'") == 0);
  CHECK(said("\"expert_router_depth\": 2").find("config.json:2: 'expert_router_depth' is not known of a llama") == 0);
  CHECK(said("\"vocab_size\": 3,\n\"vocab_size\": 4") ==
        "config.json:3: 'vocab_size' is given twice, first in line 2; keep one");
  CHECK(said("\"vocab_size\": 3,,").find("config.json:2:17: bad JSON: there is a comma too many") == 0);
  CHECK(config_refusal(R"({"model_type": "mixtral", "num_experts_per_tok": 9})")
            .find("more than 'num_local_experts', 8") != std::string::npos);
  CHECK(config_refusal(R"({"model_type": "lama"})").find("did you mean 'llama'?") != std::string::npos);
  CHECK(config_refusal("{}").find("config.json: 'model_type' is missing") == 0);
  CHECK(config_refusal(R"({"index_topk": 512})").find("config.json: 'model_type' is missing") == 0);
  CHECK(config_refusal(R"({"model_type": "gpt2", "n_positions": 0})") ==
        "config.json:1: 'n_positions' must be 1 or more: rows of the table of positions");
  CHECK(config_refusal("[1]").find("config.json:1: a configuration must be a JSON object") == 0);
  CHECK(config_refusal(std::string(100, '[')).find("nested deeper than 64 levels") != std::string::npos);
  CHECK(config_refusal(R"({"model_type": "deepseek_v3", "n_shared_experts": 1000000})").find("'n_shared_experts'") !=
        std::string::npos);
  CHECK(config_refusal(R"({"model_type": "mixtral", "num_hidden_layers": 10000, "hidden_size": 1000000, "head_dim": 128,
                    "intermediate_size": 10000000, "num_local_experts": 100000})")
            .find("more than 1e+16 parameters") != std::string::npos);
}

TEST_CASE("routers that take experts of some groups alone are read from n_group and topk_group") {
  using Groups = std::pair<std::int64_t, std::int64_t>;
  const auto groups = [](const ModelConfig& config) {
    return Groups(config.model().expert_groups, config.model().groups_per_token);
  };
  const auto of_file = [&](const std::string& name) {
    return groups(models::read_model_config(kFolder + name + ".json"));
  };
  const Groups all(1, 0);
  CHECK(of_file("deepseek-ai--DeepSeek-V3") == Groups(8, 4));
  CHECK(of_file("deepseek-ai--DeepSeek-V3.2") == Groups(8, 4));
  CHECK(of_file("moonshotai--Kimi-K2-Instruct") == all);
  CHECK(of_file("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8") == all);  // its n_groups are those of Mamba layers
  CHECK(of_file("Qwen--Qwen3-30B-A3B") == all);
  // DeepseekV3Config has 8 and 4 for a file that lacks them, which is told.
  CHECK(groups(parsed(R"({"model_type": "deepseek_v3"})")) == Groups(8, 4));
  CHECK(models::summary(parsed(R"({"model_type": "deepseek_v3"})")).find("n_group=8 and topk_group=4") !=
        std::string::npos);
  // DeepseekV2Config chooses by topk_method, whose default is greedy: among all experts.
  const auto second = [](const std::string& method) {
    return parsed(R"({"model_type": "deepseek_v2", "n_routed_experts": 160, "num_experts_per_tok": 6, "n_group": 8,
                      "topk_group": 3)" +
                  method + "}");
  };
  CHECK(groups(second(R"(, "topk_method": "group_limited_greedy")")) == Groups(8, 3));
  CHECK(groups(second(R"(, "topk_method": "greedy")")) == all);
  CHECK(groups(second("")) == all);
  const std::string third = R"({"model_type": "deepseek_v3", "n_routed_experts": 64, "num_experts_per_tok": 8, )";
  CHECK(config_refusal(third + "\n\"n_group\": 7}") ==
        "config.json:2: 'n_group' is 7, which does not divide the 64 experts");
  CHECK(config_refusal(third + "\n\"topk_group\": 9}") == "config.json:2: 'topk_group' is 9, more than 'n_group', 8");
  CHECK(config_refusal(third + "\"n_group\": 32,\n\"topk_group\": 3}") ==
        "config.json:2: 'topk_group' is 3, and so many groups have 6 experts, fewer than the 8 of a token");
}

TEST_CASE("keys that published files have beside those of their family are read") {
  // GLM-4.5 (355 B, 32 B active), Qwen3-Coder-480B-A35B, DeepSeek-V2-Lite (15.7 B, 2.4 B active), StarCoder2-3B.
  const auto glm = parsed(R"({"model_type": "glm4_moe", "attention_bias": true, "head_dim": 128, "hidden_size": 5120,
      "partial_rotary_factor": 0.5, "intermediate_size": 12288, "moe_intermediate_size": 1536, "n_group": 1,
      "num_attention_heads": 96, "n_routed_experts": 160, "n_shared_experts": 1, "num_experts_per_tok": 8,
      "first_k_dense_replace": 3, "num_hidden_layers": 92, "num_key_value_heads": 8, "num_nextn_predict_layers": 1,
      "use_qk_norm": true, "vocab_size": 151552})");
  CHECK(static_cast<double>(model_parameters(glm.model())) == Approx(355e9).epsilon(0.01));
  CHECK(static_cast<double>(active_parameters(glm.model()) - 2 * 151'552 * 5'120) == Approx(32e9).epsilon(0.01));
  CHECK(glm.model().query_key_norm);
  CHECK(has_note(glm.without_effect, "partial_rotary_factor", "rotated"));
  const auto coder = parsed(R"({"model_type": "qwen3_moe", "head_dim": 128, "hidden_size": 6144, "mlp_only_layers": [],
      "moe_intermediate_size": 2560, "num_attention_heads": 96, "num_experts": 160, "num_experts_per_tok": 8,
      "num_hidden_layers": 62, "num_key_value_heads": 8, "qkv_bias": false, "use_qk_norm": true,
      "shared_expert_intermediate_size": 0, "vocab_size": 151936})");
  CHECK(static_cast<double>(model_parameters(coder.model())) == Approx(480e9).epsilon(0.01));
  CHECK(static_cast<double>(active_parameters(coder.model())) == Approx(35e9).epsilon(0.02));
  const auto lite = parsed(R"({"model_type": "deepseek_v2", "first_k_dense_replace": 1, "hidden_size": 2048,
      "intermediate_size": 10944, "kv_lora_rank": 512, "moe_intermediate_size": 1408, "moe_layer_freq": 1,
      "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 16, "num_experts_per_tok": 6,
      "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null, "vocab_size": 102400})");
  CHECK(static_cast<double>(model_parameters(lite.model())) == Approx(15.7e9).epsilon(0.01));
  CHECK(static_cast<double>(active_parameters(lite.model()) - 102'400 * 2'048) == Approx(2.4e9).epsilon(0.04));
  CHECK(lite.model().query_rank == 0);
  // DeepSeek-V2's attention beside one feed-forward network.
  const auto dense =
      parsed(R"({"model_type": "deepseek_v3", "n_routed_experts": null, "num_hidden_layers": 2})").model();
  CHECK_FALSE(dense.has_experts());
  CHECK(dense.is_latent());
  const auto coder2 = parsed(R"({"model_type": "starcoder2", "norm_type": "layer_norm", "mlp_type": "default",
      "use_bias": true, "sliding_window": 4096})");
  CHECK(static_cast<double>(model_parameters(coder2.model())) == Approx(3.03e9).epsilon(0.01));
  CHECK(coder2.model().window == 4096);
}

TEST_CASE("layers that are not all alike are read as the architecture of the catalog's model") {
  // Totals of docs/facts/architectures.md, each proven by its checkpoint, without multi-token prediction and towers.
  const auto total = [](const std::string& file) {
    return model_parameters(models::read_model_config(kFolder + file).model());
  };
  // A file with Infinity, which is no JSON but what Python writes.
  CHECK(total("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8.json") == 120'668'707'840);
  CHECK(total("MiniMaxAI--MiniMax-M2.7.json") == 228'689'764'864);
  CHECK(total("XiaomiMiMo--MiMo-7B-Base.json") == 7'622'619'136);
  CHECK(total("meta-llama--Llama-4-Maverick-17B-128E-Instruct.json") == 401'583'781'376 - 871'932'416);
  // The language model, its vision tower without the table of 2,304 positions, and no layer for further tokens.
  CHECK(total("Qwen--Qwen3.5-27B.json#text_config") == 26'895'998'464);
  CHECK(static_cast<double>(total("Qwen--Qwen3.5-27B.json")) == Approx(26.896e9 + 0.461e9).epsilon(0.0005));
  CHECK(static_cast<double>(total("Qwen--Qwen3-VL-2B-Instruct.json")) == Approx(1.72057e9 + 0.407e9).epsilon(0.005));
  CHECK(parameters(R"({"model_type": "gemma2", "hidden_size": 4608, "intermediate_size": 36864,
      "num_hidden_layers": 46, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128})") ==
        27'227'128'320);
  CHECK(parameters(R"({"model_type": "mamba2", "hidden_size": 2560, "num_hidden_layers": 64, "num_heads": 80,
      "n_groups": 1, "vocab_size": 50288, "tie_word_embeddings": true})") == 2'702'599'680);
}
