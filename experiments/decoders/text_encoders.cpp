// Further encoders of text: DistilBERT, ELECTRA and ModernBERT, and BART, an encoder beside a decoder. Defaults are
// those of their classes in transformers/models/*/configuration_*.py (Hugging Face) at version 4.57.3.
#include <fmt/format.h>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/encoder_parts.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/model_keys/head_widths.hpp"

namespace manyworlds::experiments::models {
namespace {

constexpr const char* kNormAlone = R"({"output_norm": {"norms": "none", "residual": false}})";

void add_classifier(ConfigReader& reader) {
  reader.ends().head = false;
  reader.layers().end_with(
      fmt::format(R"({{"classifier": {{"classes": {}, "hidden_layer": {}, "norms": "none", "residual": false}}}})",
                  class_count(reader), reader.setting("hidden")));
}

/// Masked words, by the table of tokens behind a layer and a norm.
void add_masked_head(ConfigReader& reader, bool biased) {
  reader.layers().end_with(
      fmt::format(R"({{"linear": {{"activate": true, "bias": {}, "norms": "none", "residual": false}}}})", biased));
}

/// BERT of half the layers, without segments.
void read_distilbert(ConfigReader& reader) {
  reader.take("layers", {"n_layers", "num_hidden_layers"});
  reader.take("hidden", {"dim", "hidden_size"});
  reader.take("heads", {"n_heads", "num_attention_heads"});
  check_head_width(reader, said_size(reader, "hidden", {"dim", "hidden_size"}),
                   said_size(reader, "heads", {"n_heads", "num_attention_heads"}));
  reader.set("kv_heads", reader.setting("heads"));
  reader.take("ffn_hidden", {"hidden_dim"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  reader.set("norm", "layer_norm");
  reader.set("position", "learned");
  reader.set("biases", true);
  read_network_activation(reader, {"activation"}, "gelu");
  reader.set("dropout", reader.real({"dropout"}, 0.1) > 0, "dropout");
  refuse_flag(reader, "sinusoidal_pos_embds", "a table of positions that is not learned is not modelled");
  reader.find({"attention_dropout", "qa_dropout", "seq_classif_dropout", "tie_weights_"});
  add_alike(reader, R"([{"attention": {"causal": false, "norms": "after"}}, {"mlp": {"norms": "after"}}])");
  reader.layers().begin_with(kNormAlone);
  if (purpose(reader, {"ForMaskedLM", "Model", "ForSequenceClassification"}) == "ForSequenceClassification")
    return add_classifier(reader);
  add_masked_head(reader, true);
  reader.leave_out({"vocab_size", "biases of the output layer", reader.setting("vocabulary")});
}

/// Its pretraining has two networks, and a file describes one of them.
void read_electra(ConfigReader& reader) {
  read_encoder(reader, {"hidden_dropout_prob"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  require_text(reader, "position_embedding_type", "absolute");
  if (reader.integer({"embedding_size"}, 0) != reader.setting("hidden"))
    reader.refuse(reader.find({"embedding_size"}),
                  "'embedding_size' is not 'hidden_size': a table narrower than the layers is not modelled");
  reader.find({"classifier_dropout", "summary_last_dropout", "gradient_checkpointing"});
  add_alike(reader, R"([{"attention": {"causal": false, "norms": "after"}}, {"mlp": {"norms": "after"}}])");
  reader.layers().begin_with(kNormAlone);
  if (const std::int64_t types = reader.integer({"type_vocab_size"}, 0); types > 0)
    reader.leave_out({"type_vocab_size", "the table of segments", types * reader.setting("hidden")});
  if (reader.config().architecture.ends_with("ForPreTraining"))
    return reader.refuse(
        reader.find({"architectures"}),
        fmt::format("'architectures' has '{}': it learns which words a generator has replaced, which is "
                    "a model of its own; modelled is ForSequenceClassification",
                    reader.config().architecture.substr(0, 60)));
  purpose(reader, {"ForSequenceClassification"});
  add_classifier(reader);
}

/// Returns whether each layer sees a window.
std::vector<bool> modernbert_windows(ConfigReader& reader) {
  if (const FoundKey types = reader.find({"layer_types"}); types.is_set())
    return layers_named(reader, types, "sliding_attention", "full_attention");
  const std::int64_t every = reader.integer({"global_attn_every_n_layers"}, 3);
  if (every < 1)
    reader.fail(reader.find({"global_attn_every_n_layers"}), "'global_attn_every_n_layers' must be 1 or more");
  std::vector<bool> windowed;
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer) windowed.push_back(layer % every != 0);
  return windowed;
}

/// The first layer's attention has no norm before it, as one stands behind the table of tokens.
void add_modernbert_layers(ConfigReader& reader) {
  const std::int64_t both = reader.integer({"local_attention"}, 128);  // tokens on both sides that a token sees
  const std::int64_t side = both / 2;
  if (side < 1)
    reader.fail(
        reader.find({"local_attention"}),
        fmt::format("'local_attention' is {}, of which a token sees one half on each side; it must be 2 or more",
                    both));
  bool first = true;
  for (const bool windowed : modernbert_windows(reader)) {
    std::string attention = R"("causal": false)";
    if (windowed) attention += fmt::format(R"(, "window": {})", 2 * side + 1);
    if (first) attention += R"(, "norms": "none")";
    reader.layers().add(first      ? "normed"
                        : windowed ? "windowed"
                                   : "full",
                        fmt::format(R"([{{"attention": {{{}}}}}, "mlp"])", attention));
    first = false;
  }
  reader.layers().begin_with(kNormAlone);
  reader.layers().end_with(kNormAlone);
}

void read_modernbert(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  std::erase_if(reader.values(), [](const ConfigValue& value) {
    return value.option == "norm" || value.option == "activation" || value.option == "dropout";
  });
  const bool shifted = reader.flag({"norm_bias"}, false);
  reader.set("norm", shifted ? "layer_norm" : "rms_norm", "norm_bias");
  if (!shifted)
    reader.note("norm_bias", "norms of mean and variance without a shift, which move the bytes of RMS norms");
  reader.set("activation", "geglu");
  reader.set("dropout", reader.real({"mlp_dropout"}, 0) > 0, "mlp_dropout");
  reader.set("biases", false);
  for (const char* key : {"attention_bias", "mlp_bias"})
    refuse_flag(reader, key, "biases beside layers without them are not modelled in this family");
  reader.find({"classifier_activation", "classifier_dropout", "classifier_pooling", "cls_token_id", "embedding_dropout",
               "deterministic_flash_attn", "global_rope_theta", "initializer_cutoff_factor", "local_rope_theta",
               "position_embedding_type", "reference_compile", "repad_logits_with_grad", "sep_token_id",
               "sparse_pred_ignore_index", "sparse_prediction"});
  add_modernbert_layers(reader);
  if (purpose(reader, {"ForMaskedLM", "Model", "ForSequenceClassification"}) == "ForSequenceClassification")
    return add_classifier(reader);  // whose first layer has a norm behind it, with as many weights as its biases here
  add_masked_head(reader, reader.flag({"classifier_bias"}, false));
  if (reader.flag({"decoder_bias"}, true))
    reader.leave_out({"decoder_bias", "biases of the output layer", reader.setting("vocabulary")});
}

/// A network's layers with norms behind their parts. That behind the last one is its end's.
LayerList bart_layers(std::int64_t count, const std::string& attention) {
  LayerList layers;
  for (std::int64_t layer = 0; layer < count; ++layer)
    layers.add(layer + 1 < count ? "layer" : "unnormed",
               fmt::format(R"([{}, {{"mlp": {{"norms": "{}"}}}}])", attention, layer + 1 < count ? "after" : "none"));
  layers.begin_with(kNormAlone);
  return layers;
}

std::int64_t bart_size(ConfigReader& reader, std::string_view key) {
  constexpr std::int64_t kMax = 1'000'000;
  const std::int64_t value = reader.integer({key}, 0);
  if (value < 1 || value > kMax) reader.fail(reader.find({key}), fmt::format("'{}' must be from 1 to {}", key, kMax));
  return value;
}

void read_bart(ConfigReader& reader) {
  constexpr std::int64_t kMaxLayers = 10'000, kPadded = 2;  // rows of each table of positions before the first
  purpose(reader, {"ForConditionalGeneration", "Model"});
  reader.take("hidden", {"d_model"});
  reader.take("layers", {"decoder_layers"});
  reader.take("heads", {"decoder_attention_heads"});
  reader.set("kv_heads", reader.setting("heads"));
  reader.take("ffn_hidden", {"decoder_ffn_dim"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  reader.set("norm", "layer_norm");
  reader.set("position", "learned");
  reader.set("biases", true);
  read_network_activation(reader, {"activation_function"}, "gelu");
  reader.set("dropout", reader.real({"dropout"}, 0.1) > 0, "dropout");
  for (const char* key : {"normalize_before", "add_final_layer_norm", "static_position_embeddings", "add_bias_logits"})
    refuse_flag(reader, key, "of BART's relatives, whose layers are others");
  if (!reader.flag({"normalize_embedding"}, true))
    reader.refuse(reader.find({"normalize_embedding"}), "'normalize_embedding' is false: no published model is so");
  reader.find({"num_hidden_layers", "extra_pos_embeddings", "scale_embedding", "activation_dropout",
               "attention_dropout", "classif_dropout", "classifier_dropout", "encoder_layerdrop", "decoder_layerdrop",
               "init_std", "gradient_checkpointing", "is_encoder_decoder", "no_repeat_ngram_size", "num_labels"});
  const std::int64_t tokens = bart_size(reader, "max_position_embeddings"),
                     encoders = bart_size(reader, "encoder_layers"),
                     heads = bart_size(reader, "encoder_attention_heads"), width = bart_size(reader, "encoder_ffn_dim"),
                     hidden = reader.setting("hidden");
  if (encoders > kMaxLayers) reader.fail(reader.find({"encoder_layers"}), "'encoder_layers' must be 10000 or less");
  const SaidSize stream = said_size(reader, "hidden", {"d_model"});
  check_head_width(reader, stream, {reader.find({"encoder_attention_heads"}), heads});
  check_head_width(reader, stream, said_size(reader, "heads", {"decoder_attention_heads"}));
  Network front{
      "encoder",
      fmt::format(R"("sequence": {}, "heads": {}, "kv_heads": {}, "ffn_hidden": {})", tokens, heads, heads, width),
      bart_layers(encoders, R"({"attention": {"causal": false, "norms": "after"}})")};
  front.layers.begin_with(R"({"token_embedding": {"norms": "none", "residual": false}})");
  front.layers.end_with(kNormAlone);
  reader.front() = {front};
  reader.layers() = bart_layers(
      reader.setting("layers"),
      fmt::format(R"({{"attention": {{"norms": "after"}}}}, {{"cross_attention": {{"keys": {}, "norms": "after"}}}})",
                  tokens));
  reader.ends().network = "decoder";
  reader.set_sequence(tokens);
  reader.leave_out({"max_position_embeddings",
                    fmt::format("two rows of each table of positions; samples have {} tokens in both stacks", tokens),
                    2 * kPadded * hidden});
}

}  // namespace

std::vector<Family> text_encoder_families() {
  return {
      {"bart", "BartConfig",
       R"({"vocab_size": 50265, "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
           "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096,
           "decoder_attention_heads": 16, "d_model": 1024, "dropout": 0.1, "tie_word_embeddings": true})",
       read_bart, " is_encoder_decoder add_cross_attention "},
      {"distilbert", "DistilBertConfig",
       R"({"vocab_size": 30522, "max_position_embeddings": 512, "n_layers": 6, "n_heads": 12, "dim": 768,
           "hidden_dim": 3072, "dropout": 0.1, "initializer_range": 0.02, "tie_word_embeddings": true})",
       read_distilbert},
      {"electra", "ElectraConfig",
       R"({"vocab_size": 30522, "embedding_size": 128, "hidden_size": 256, "num_hidden_layers": 12,
           "num_attention_heads": 4, "intermediate_size": 1024, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
           "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
           "initializer_range": 0.02, "layer_norm_eps": 1e-12, "tie_word_embeddings": true})",
       read_electra},
      {"modernbert", "ModernBertConfig",
       R"({"vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
           "num_attention_heads": 12, "hidden_activation": "gelu", "max_position_embeddings": 8192,
           "initializer_range": 0.02, "norm_eps": 1e-05, "tie_word_embeddings": true})",
       read_modernbert, " layer_types "},
  };
}

}  // namespace manyworlds::experiments::models
