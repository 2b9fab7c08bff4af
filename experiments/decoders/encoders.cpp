// Encoders, and encoders beside decoders: BERT and RoBERTa, ViT, T5 and mT5, and the text tower of CLIP.
#include <fmt/format.h>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/encoder_parts.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/model_keys/activations.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

constexpr std::int64_t kEncoderTokens = 512, kDecoderTokens = 114;  // of T5 (Raffel et al. 2020, section 3.1.4)
constexpr std::int64_t kMaxPatches = 1'000'000;

/// What is trained behind BERT: words that are masked, by the table of tokens, or classes of whole samples.
void read_bert_head(ConfigReader& reader) {
  const std::string_view trained =
      purpose(reader, {"ForMaskedLM", "Model", "ForPreTraining", "ForSequenceClassification"});
  const std::int64_t hidden = reader.setting("hidden");
  if (trained == "ForSequenceClassification") {
    reader.ends().head = false;
    reader.layers().end_with(
        fmt::format(R"({{"classifier": {{"classes": {}, "hidden_layer": {}, "norms": "none", "residual": false}}}})",
                    class_count(reader), hidden));
    return;
  }
  reader.layers().end_with(R"({"linear": {"activate": true, "norms": "none", "residual": false}})");
  reader.leave_out({"vocab_size", "biases of the output layer", reader.setting("vocabulary")});
  if (trained == "Model")
    reader.leave_out({"architectures", "a pooler, whose output no masked word needs", hidden * (hidden + 1)});
  if (trained == "ForPreTraining")
    reader.leave_out({"architectures", "the pooler and the prediction of next sentences", (hidden + 2) * (hidden + 1)});
}

/// Rows of RoBERTa's table of positions that are those of padding: positions begin behind them.
void leave_out_padded_rows(ConfigReader& reader) {
  const std::int64_t rows = reader.integer({"pad_token_id"}, 1) + 1;
  const std::int64_t positions = reader.integer({"max_position_embeddings"}, 0);
  if (positions <= rows)
    reader.fail(reader.find({"max_position_embeddings"}),
                fmt::format("'max_position_embeddings' must be more than {}, the rows of padding", rows));
  reader.set_sequence(positions - rows);
  reader.leave_out({"pad_token_id", "rows of the table of positions for padding", rows * reader.setting("hidden")});
}

void read_bert(ConfigReader& reader) {
  read_encoder(reader, {"hidden_dropout_prob"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  require_text(reader, "position_embedding_type", "absolute");
  if (reader.flag({"is_decoder"}, false))
    reader.refuse(reader.find({"is_decoder"}), "'is_decoder' is true: BERT is modelled as an encoder");
  reader.find({"classifier_dropout", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
               "pooler_size_per_head", "pooler_type", "directionality", "gradient_checkpointing"});
  add_alike(reader, R"([{"attention": {"causal": false, "norms": "after"}}, {"mlp": {"norms": "after"}}])");
  reader.layers().begin_with(R"({"output_norm": {"norms": "none", "residual": false}})");
  const std::int64_t types = reader.integer({"type_vocab_size"}, 0);
  if (types > 0) reader.leave_out({"type_vocab_size", "the table of segments", types * reader.setting("hidden")});
  read_bert_head(reader);
}

void read_roberta(ConfigReader& reader) {
  read_bert(reader);
  leave_out_padded_rows(reader);
}

void read_vit(ConfigReader& reader) {
  read_encoder(reader, {"hidden_dropout_prob"});
  if (!reader.flag({"qkv_bias"}, true))
    reader.refuse(reader.find({"qkv_bias"}), "'qkv_bias' is false: biases of the other projections alone");
  const std::string_view trained = purpose(reader, {"ForImageClassification", "Model"});
  const std::int64_t patch = reader.integer({"patch_size"}, 0), side = reader.integer({"image_size"}, 0);
  const std::int64_t channels = reader.integer({"num_channels"}, 0);
  if (patch < 1 || side < patch || channels < 1 || channels > 1'000 || (side / patch) * (side / patch) > kMaxPatches)
    reader.fail(reader.find({"image_size"}),
                fmt::format("'image_size' and 'patch_size' must give from 1 to {} patches, of 1 to 1000 channels",
                            kMaxPatches));
  reader.set_sequence((side / patch) * (side / patch) + 1);
  reader.set("vocabulary", std::int64_t{1});
  reader.set("tied_embeddings", false);
  reader.find({"attention_probs_dropout_prob", "encoder_stride", "pooler_act", "pooler_output_size"});
  reader.ends() = {.embedding = false, .head = false};
  add_alike(reader, R"([{"attention": {"causal": false}}, "mlp"])");
  reader.layers().begin_with(
      fmt::format(R"({{"patch_embedding": {{"inputs": {}, "extra_tokens": 1, "norms": "none", "residual": false}}}})",
                  channels * patch * patch));
  reader.layers().end_with(
      fmt::format(R"({{"classifier": {{"classes": {}, "residual": false}}}})", class_count(reader)));
  if (trained == "Model")
    reader.leave_out({"architectures", "the pooler, in whose place are classes",
                      reader.setting("hidden") * (reader.setting("hidden") + 1)});
}

/// The activation of T5's feed-forward network, and whether it has a gate: "relu", "gated-gelu".
void read_t5_feed_forward(ConfigReader& reader) {
  reader.take("ffn_hidden", {"d_ff"});
  constexpr std::string_view kGated = "gated-";
  const std::string name = reader.text({"feed_forward_proj"}, "relu");
  const bool gated = name.starts_with(kGated);
  const std::optional<Function> function = function_named(std::string_view(name).substr(gated ? kGated.size() : 0));
  std::string_view activation;
  if (function == Function::gelu) activation = gated ? "geglu" : "gelu";
  if (function == Function::silu && gated) activation = "swiglu";
  if (function == Function::relu && !gated) activation = "relu";
  if (activation.empty())
    reader.refuse(
        reader.find({"feed_forward_proj"}),
        fmt::format("'feed_forward_proj' is '{}': this feed-forward network is not modelled", name.substr(0, 40)));
  else
    reader.set("activation", std::string(activation), "feed_forward_proj");
}

void read_t5(ConfigReader& reader) {
  purpose(reader, {"ForConditionalGeneration", "T5Model", "T5WithLMHeadModel"});
  if (!reader.flag({"is_encoder_decoder"}, true))
    reader.refuse(reader.find({"is_encoder_decoder"}), "'is_encoder_decoder' must be true in this family");
  reader.take("layers", {"num_layers"});
  reader.take("hidden", {"d_model"});
  reader.take("heads", {"num_heads"});
  reader.set("kv_heads", reader.setting("heads"));
  reader.take("head_dim", {"d_kv"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  read_t5_feed_forward(reader);
  reader.set("norm", "rms_norm");
  reader.set("position", "none");
  reader.set("biases", false);
  reader.set("dropout", reader.real({"dropout_rate"}, 0) > 0, "dropout_rate");
  reader.find({"dense_act_fn", "is_gated_act", "classifier_dropout", "relative_attention_max_distance"});
  const std::int64_t encoder = reader.setting("layers");
  const std::int64_t decoder = reader.integer({"num_decoder_layers"}, encoder);
  if (decoder < 1 || decoder > 10'000)
    reader.fail(reader.find({"num_decoder_layers"}), "'num_decoder_layers' must be from 1 to 10000");
  Network front{"encoder", fmt::format(R"("sequence": {})", kEncoderTokens), {}};
  for (std::int64_t i = 0; i < encoder; ++i) front.layers.add("layer", R"([{"attention": {"causal": false}}, "mlp"])");
  front.layers.begin_with(R"({"token_embedding": {"norms": "none", "residual": false}})");
  front.layers.end_with(R"({"output_norm": {"norms": "none", "residual": false}})");
  reader.front() = {front};
  for (std::int64_t i = 0; i < decoder; ++i)
    reader.layers().add("layer",
                        fmt::format(R"(["attention", {{"cross_attention": {{"keys": {}}}}}, "mlp"])", kEncoderTokens));
  reader.ends().network = "decoder";
  reader.set_sequence(kDecoderTokens);
  const bool each_layer = reader.config().family == "umt5";
  const std::int64_t tables = each_layer ? encoder + decoder : 2;
  reader.leave_out({"relative_attention_num_buckets",
                    fmt::format("tables of relative positions, one of each {}; samples have {} tokens in the encoder "
                                "and {} in the decoder",
                                each_layer ? "layer" : "stack", kEncoderTokens, kDecoderTokens),
                    tables * reader.integer({"relative_attention_num_buckets"}, 32) * reader.setting("heads")});
}

/// The text tower. The image tower, the projections and the loss are read of the document around it.
void read_clip_text(ConfigReader& reader) {
  read_encoder(reader, {"dropout"});
  reader.take("vocabulary", {"vocab_size"});
  reader.set("tied_embeddings", false);
  reader.find({"projection_dim"});
  reader.ends().head = false;
  add_alike(reader, R"(["attention", "mlp"])");
}

constexpr std::string_view kBertSizes =
    R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
        "initializer_range": 0.02, "layer_norm_eps": 1e-12, "tie_word_embeddings": true})";

}  // namespace

std::vector<Family> encoder_families() {
  return {
      {"bert", "BertConfig", kBertSizes, read_bert},
      {"camembert", "", R"({"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "tie_word_embeddings": true})",
       read_roberta},
      {"clip_text_model", "CLIPTextConfig",
       R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048, "projection_dim": 512,
           "num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77,
           "hidden_act": "quick_gelu", "layer_norm_eps": 1e-05, "attention_dropout": 0.0, "initializer_range": 0.02})",
       read_clip_text},
      {"mt5", "", R"({"relative_attention_num_buckets": 32, "feed_forward_proj": "gated-gelu", "dropout_rate": 0.1})",
       read_t5, " is_encoder_decoder "},
      {"roberta", "", R"({"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "tie_word_embeddings": true})",
       read_roberta},
      {"t5", "T5Config",
       R"({"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_decoder_layers": null,
           "num_heads": 8, "relative_attention_num_buckets": 32, "dropout_rate": 0.1, "layer_norm_epsilon": 1e-06,
           "feed_forward_proj": "relu", "tie_word_embeddings": true})",
       read_t5, " is_encoder_decoder "},
      {"umt5", "", R"({"relative_attention_num_buckets": 32, "feed_forward_proj": "gated-gelu", "dropout_rate": 0.1})",
       read_t5, " is_encoder_decoder "},
      {"vit", "ViTConfig",
       R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
           "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "image_size": 224,
           "patch_size": 16, "num_channels": 3, "qkv_bias": true, "initializer_range": 0.02, "layer_norm_eps": 1e-12})",
       read_vit},
      {"xlm-roberta", "", R"({"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "tie_word_embeddings": true})",
       read_roberta},
  };
}

}  // namespace manyworlds::experiments::models
