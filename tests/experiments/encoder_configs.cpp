// Configurations of encoders, of models with image towers, and of DeepSeek-V4 and Nemotron-NAS: parameters as published
// (docs/facts/architectures.md, sections 1, 4, 5, 7, 10 and 11), and the layers of the catalog's entries.
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
using core::workload::model_flops_per_sequence;
using core::workload::model_parameters;
using models::ModelConfig;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/models/";

ModelConfig parsed(const std::string& text) {
  return models::parse_model_config(text, "config.json");
}

std::int64_t total(const std::string& text) {
  return model_parameters(parsed(text).model());
}

std::string refusal(const std::string& text, const std::string& member = {}) {
  return testing::config_refusal(text, "config.json", member);
}

bool leaves_out(const ModelConfig& config, const std::string& key, const std::string& part) {
  for (const models::ConfigNote& note : config.left_out)
    if (note.key == key && note.text.find(part) != std::string::npos) return true;
  return false;
}

/// Checks that a configuration of `sequence` tokens has the weights and the FLOPs of a model of the catalog.
void check_as_catalog(const std::string& name, ModelConfig config) {
  CAPTURE(name);
  static const Catalog catalog;
  const core::workload::Model known = testing::catalog_model(catalog, name);
  config.sequence = known.sequence;
  const core::workload::Model read = config.model();
  CHECK(read.layers == known.layers);
  CHECK(model_parameters(read) == model_parameters(known));
  CHECK(model_flops_per_sequence(read) == model_flops_per_sequence(known));
}

std::string labels(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += fmt::format("{}\"{}\": \"c\"", i == 0 ? "" : ", ", i);
  return "\"id2label\": {" + all + "}";
}

const std::string kLlava = R"({"model_type": "llava", "projector_hidden_act": "gelu", "vision_feature_layer": -2,
  "vision_feature_select_strategy": "default", "image_token_index": 32000, "vocab_size": 32064,
  "text_config": {"model_type": "llama", "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "vocab_size": 32064},
  "vision_config": {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
    "model_type": "clip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14,
    "projection_dim": 768, "vocab_size": 32000}})";

const std::string kClip = R"({"model_type": "clip", "projection_dim": 768, "logit_scale_init_value": 2.6592,
  "text_config": {"model_type": "clip_text_model", "hidden_size": 768, "intermediate_size": 3072,
    "num_attention_heads": 12, "projection_dim": 768},
  "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096,
    "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768}})";

std::string gemma3(const std::string& text) {
  return R"({"model_type": "gemma3", "mm_tokens_per_image": 256, "boi_token_index": 255999,
    "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
      "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14,
      "vision_use_head": false},
    "text_config": {"model_type": "gemma3_text", )" +
         text + "}}";
}

}  // namespace

TEST_CASE("seeds of the fuzzer that have architectures are read") {
  const std::string folder = source_folder() + "/tests/fuzz/seeds/models/";
  for (const char* name : {"bert", "clip", "deepseek_v4", "gemma3", "llama4", "mamba2", "nemotron_nas", "t5", "vit",
                           "falcon", "cohere2", "step3p5", "gpt_neo", "minimax", "modernbert", "bart", "lfm2"}) {
    CAPTURE(name);
    CHECK(parsed(import::read_text(folder + name + ".json")).model().architecture != nullptr);
  }
}

TEST_CASE("BERT and RoBERTa are read with the head that they are trained with") {
  // The published counts are those of encoder and pooler; a pooler has as many weights as the layer before the table.
  constexpr std::int64_t kLayer = 768 * 769, kTypes = 2 * 768, kNorm = 2 * 768;
  const std::string masked = R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})";
  CHECK(total(masked) == 109'482'240 - kLayer - kTypes + kLayer + kNorm);
  CHECK(leaves_out(parsed(masked), "type_vocab_size", "segments"));
  CHECK(leaves_out(parsed(masked), "vocab_size", "biases of the output layer"));
  CHECK(total(R"({"model_type": "bert", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
                  "intermediate_size": 4096})") == 335'141'888 - 2 * 1'024 + 2 * 1'024);
  check_as_catalog("bert-base", parsed(masked));
  CHECK(total(R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"], )" + labels(3) + "}") ==
        109'482'240 - kTypes + 3 * 769);
  // 124,697,433 weights of the file of roberta-base, with two rows of padding, one kind of segments and biases.
  const std::string roberta = R"({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"],
    "vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1})";
  CHECK(total(roberta) == 124'697'433 - 2 * 768 - 768 - 50'265);
  CHECK(parsed(roberta).sequence == 512);
  CHECK(refusal(R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"]})")
            .find("'architectures' has 'BertForQuestionAnswering'") != std::string::npos);
  CHECK(refusal(R"({"model_type": "bert", "position_embedding_type": "relative_key"})").find("only absolute") !=
        std::string::npos);
  CHECK(refusal(R"({"model_type": "roberta", "vocab_size": 8})").find("'num_hidden_layers' is missing") !=
        std::string::npos);
}

TEST_CASE("T5 is read as an encoder and a decoder, whose relative positions are left out") {
  const auto positions = [](std::int64_t heads) { return 2 * 32 * heads; };
  CHECK(total(R"({"model_type": "t5"})") == 60'506'624 - positions(8));
  check_as_catalog("t5-small", parsed(R"({"model_type": "t5", "is_encoder_decoder": true, "n_positions": 512})"));
  const std::string base = R"({"model_type": "t5", "d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12,
    "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false, "dense_act_fn": "gelu_new", "is_gated_act": true})";
  CHECK(total(base) == 247'577'856 - positions(12));
  check_as_catalog("t5-v1.1-base", parsed(base));
  const std::string mt5 = R"({"model_type": "mt5", "architectures": ["MT5ForConditionalGeneration"],
    "vocab_size": 250112, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8, "num_decoder_layers": 8,
    "num_heads": 6, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": )";
  CHECK(total(mt5 + "false}") == 300'176'768 - positions(6));
  CHECK(total(mt5 + "true}") == 300'176'768 - positions(6) - 250'112 * 512);
  CHECK(leaves_out(parsed(base), "relative_attention_num_buckets", "512 tokens in the encoder and 114 in the decoder"));
  CHECK(refusal(R"({"model_type": "t5", "feed_forward_proj": "gated-relu6"})").find("'gated-relu6'") !=
        std::string::npos);
  CHECK(refusal(R"({"model_type": "t5", "architectures": ["T5EncoderModel"]})").find("T5EncoderModel") !=
        std::string::npos);
}

TEST_CASE("ViT is read with the classes that it has labels for") {
  const std::string vit = R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], )" + labels(1'000);
  CHECK(total(vit + "}") == 86'567'656);
  CHECK(parsed(vit + "}").sequence == 197);
  check_as_catalog("vit-b-16", parsed(vit + "}"));
  CHECK(total(vit + R"(, "image_size": 384})") == 86'567'656 + (576 - 196) * 768);
  CHECK(refusal(vit + R"(, "qkv_bias": false})").find("'qkv_bias'") != std::string::npos);
  CHECK(refusal(vit + R"(, "image_size": 8})").find("'image_size' and 'patch_size'") != std::string::npos);
}

TEST_CASE("CLIP is read as two towers and their loss, and LLaVA as a tower before Llama") {
  CHECK(total(kClip) == 427'616'513);
  check_as_catalog("clip-vit-l-14", parsed(kClip));
  CHECK(total(R"({"model_type": "clip", "text_config": {"model_type": "clip_text_model"}, "vision_config": {}})") ==
        151'277'313);  // ViT-B/32, by the defaults of all classes
  CHECK(refusal(kClip, "text_config").find("'clip_text_model'") != std::string::npos);
  CHECK(total(kLlava) == 7'063'427'072);
  check_as_catalog("llava-1.5-7b", parsed(kLlava));
  std::string unknown = kLlava;
  unknown.replace(unknown.find("\"projection_dim\""), 16, "\"layer_scale\"");
  CHECK(refusal(unknown).find("'layer_scale' is not known of 'vision_config'") != std::string::npos);
  unknown = kLlava;
  unknown.replace(unknown.find("\"vocab_size\""), 12, "\"expert_size\"");
  CHECK(refusal(unknown).find("'expert_size' is not known of a llava") != std::string::npos);
}

TEST_CASE("what a document of towers lacks, or cannot mean, is named") {
  const auto llava = [](std::string_view from, std::string_view to) {
    std::string text = kLlava;
    return text.replace(text.find(from), from.size(), to);
  };
  const auto said = [&](std::string_view from, std::string_view to) { return refusal(llava(from, to)); };
  CHECK(said(R"("model_type": "llava", )", "") ==
        "config.json:4: 'model_type' of the document is missing: whose tower 'vision_config' is; the language model "
        "alone is config.json#text_config");
  CHECK(said(R"("model_type": "llama", )", "").find("config.json:3: 'model_type' of 'text_config' is missing") == 0);
  CHECK(said("text_config", "language") == "config.json:1: 'text_config' is missing: the language model of a llava");
  CHECK(said(R"("patch_size": 14,)", R"("patch_size": null,)") ==
        "config.json:4: 'patch_size' of 'vision_config' is missing: a size from 1 to 1000");
  CHECK(said("default", "all") == "config.json:2: 'vision_feature_select_strategy' must be default or full, not 'all'");
  CHECK(parsed(llava("default", "full")).model().architecture != nullptr);
  CHECK(said(R"("vision_feature_layer": -2)", R"("vision_feature_layer": -26)") ==
        "config.json:1: 'vision_feature_layer' must be an integer from -25 to 24, not -26");
  CHECK(leaves_out(parsed(llava(R"("vision_feature_layer": -2)", R"("vision_feature_layer": 20)")),
                   "vision_feature_layer", "the last 4 of the tower's layers"));
  CHECK_FALSE(leaves_out(parsed(kLlava), "vision_feature_layer", ""));
  CHECK(refusal(R"({"model_type": "clip", "vision_config": {},
    "text_config": {"model_type": "clip_text_model", "max_position_embeddings": 0}})") ==
        "config.json:2: 'max_position_embeddings' must be 1 or more: rows of the table of positions");
}

TEST_CASE("image towers of Gemma 3, Llama 4 and Kimi K2.5 are read with what is between them and the language model") {
  CHECK(total(gemma3(R"("hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
    "num_attention_heads": 8, "num_key_value_heads": 4, "sliding_window": 1024)")) == 4'300'079'472);
  CHECK(total(gemma3(R"("hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 48,
    "num_attention_heads": 16, "num_key_value_heads": 8, "sliding_window": 1024)")) == 12'187'325'040);
  CHECK(total(gemma3(R"("hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62,
    "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024)")) ==
        27'432'406'640);
  const std::string maverick = R"({"model_type": "llama4", "boi_token_index": 200080,
    "text_config": {"model_type": "llama4_text", "interleave_moe_layer_step": 2, "num_local_experts": 128},
    "vision_config": {"model_type": "llama4_vision_model", "hidden_size": 1408, "image_size": 336,
      "projector_input_dim": 4096, "projector_output_dim": 4096, "vision_output_dim": 4096,
      "vision_feature_layer": -1, "vision_feature_select_strategy": "default")";
  CHECK(total(maverick + "}}") == 401'583'781'376);
  CHECK(refusal(maverick + R"(, "pixel_shuffle_ratio": 0.25}})").find("'pixel_shuffle_ratio'") != std::string::npos);
  // 1,026,408,235,864 weights of Kimi K2's files, of which 3,416 are left over of their format, and the tower.
  const ModelConfig kimi = models::read_model_config(kFolder + "moonshotai--Kimi-K2.5.json");
  CHECK(model_parameters(kimi.model()) == 1'026'408'235'864 - 3'416 + 471'143'920);
  check_as_catalog("kimi-k2.5", kimi);
}

TEST_CASE("layers of Nemotron-NAS are as many blocks as there are variants") {
  const auto block = [](bool attention, double factor) {
    return fmt::format(R"({{"attention": {{"n_heads_in_group": {}, "no_op": {}, "replace_with_linear": false}},
      "ffn": {{"ffn_mult": {}, "no_op": false, "replace_with_linear": false, "sparsify": null}}}})",
                       attention ? "8" : "null", !attention, factor);
  };
  // docs/facts/architectures.md, section 1: how many layers have which variant.
  std::string blocks = block(true, 2.625);
  for (const auto& [count, attention, factor] : {std::tuple{48, true, 5.25},
                                                 {1, false, 5.25},
                                                 {1, false, 3.28125},
                                                 {5, false, 2.625},
                                                 {10, false, 1.3125},
                                                 {8, false, 1.0},
                                                 {6, false, 0.5}})
    for (int i = 0; i < count; ++i) blocks += ", " + block(attention, factor);
  const std::string head = R"({"model_type": "nemotron-nas", "hidden_size": 8192, "num_attention_heads": 64,
    "vocab_size": 128256, "intermediate_size": null, "num_key_value_heads": null, "num_hidden_layers": )";
  const ModelConfig super = parsed(head + R"(80, "block_configs": [)" + blocks + "]}");
  CHECK(model_parameters(super.model()) == 49'867'145'216);
  CHECK(super.model().architecture->blocks.size() == 8);
  const auto one = [&](const std::string& attention, const std::string& network) {
    return head + R"(1, "block_configs": [{"attention": {)" + attention + R"(}, "ffn": {)" + network + "}}]}";
  };
  const std::int64_t ends = 2 * std::int64_t{128'256} * 8'192 + 8'192;
  CHECK(total(one(R"("no_op": true)", R"("replace_with_linear": true)")) == ends + 8'192 * 8'192 + 8'192);
  CHECK(refusal(one(R"("window_length": 512, "no_op": true)", R"("ffn_mult": 1.0)")).find("'window_length'") !=
        std::string::npos);
  CHECK(refusal(one(R"("n_heads_in_group": 7)", R"("ffn_mult": 1.0)")).find("'n_heads_in_group' must divide") !=
        std::string::npos);
}

TEST_CASE("DeepSeek-V4 is read with compressed attention and hyper-connections") {
  // 290,944,616,402 and 1,598,839,674,782 weights of the released files, of which three tables of whole numbers are no
  // parameters, and one layer predicts a further token (docs/facts/architectures.md, section 5).
  constexpr std::int64_t kTables = 3 * 129'280 * 6;
  const ModelConfig flash = models::read_model_config(kFolder + "deepseek-ai--DeepSeek-V4-Flash.json");
  CHECK(model_parameters(flash.model()) == 290'944'616'402 - kTables - 6'610'048'891);
  check_as_catalog("deepseek-v4-flash", flash);
  std::string ratios = "128, 128";
  for (int i = 0; i < 29; ++i) ratios += ", 4, 128";
  const std::string pro = R"({"model_type": "deepseek_ref", "architectures": ["DeepseekV4ForCausalLM"],
    "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128, "moe_intermediate_size": 3072,
    "n_routed_experts": 384, "q_lora_rank": 1536, "o_groups": 16, "index_topk": 1024, "compress_ratios": [)" +
                          ratios + ", 4, 0]}";
  CHECK(total(pro) == 1'598'839'674'782 - kTables - 25'840'145'979);
  check_as_catalog("deepseek-v4-pro", parsed(pro));
  const auto small = [](const std::string& more) {
    return R"({"model_type": "deepseek_v4", "num_hidden_layers": 2)" + more + "}";
  };
  CHECK(total(small(R"(, "compress_ratios": [4, 128])")) ==
        total(small(R"(, "layer_types": ["compressed_sparse_attention", "heavily_compressed_attention"])")));
  CHECK(refusal(small(R"(, "compress_ratios": [4, 8])")).find("known are 0, 4 and 128") != std::string::npos);
  CHECK(refusal(small("")).find("'compress_ratios' is missing") != std::string::npos);
  CHECK(refusal(small(R"(, "compress_ratios": [4, 128], "index_n_heads": 0)")) ==
        "config.json:1: 'index_n_heads' must be 1 or more in this family");
}
