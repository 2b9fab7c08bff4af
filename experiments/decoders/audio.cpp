// Models of speech: Whisper, an encoder of audio beside a decoder of text, and wav2vec 2.0, HuBERT and Parakeet, whose
// frames each have an output (CTC).
#include <fmt/format.h>

#include <algorithm>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/encoder_parts.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/model_keys/head_widths.hpp"
#include "experiments/model_keys/known_keys.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

constexpr std::int64_t kMaxWidth = 1'000'000, kMaxLayers = 10'000, kMaxTokens = 1'000'000;
constexpr std::int64_t kAudioSamples = 250'000;  // at 16 kHz, crops of pre-training (Baevski et al. 2020, section 4.2)

std::int64_t size(ConfigReader& reader, std::string_view key, std::int64_t most) {
  const FoundKey found = reader.find({key});
  const std::int64_t value = reader.integer({key}, 0);
  if (value < 1 || value > most) reader.fail(found, fmt::format("'{}' must be from 1 to {}", key, most));
  return value;
}

void require_text(ConfigReader& reader, std::string_view key, std::initializer_list<std::string_view> known) {
  const std::string found = reader.text({key}, std::string(*known.begin()));
  if (std::find(known.begin(), known.end(), found) == known.end())
    reader.refuse(reader.find({key}),
                  fmt::format("'{}' is '{}': only {} is modelled", key, found.substr(0, 40), fmt::join(known, " or ")));
}

void require_false(ConfigReader& reader, std::string_view key, std::string_view what) {
  if (reader.flag({key}, false)) reader.refuse(reader.find({key}), fmt::format("'{}' is true: {}", key, what));
}

/// Reads how layers drop out in training, which steps do not.
void note_layer_drop(ConfigReader& reader, Keys keys) {
  if (reader.real(keys, 0) > 0)
    reader.note(reader.find(keys).key, "layers that training skips at random: a step has all of them");
}

/// A linear layer, a convolution or a norm alone on its stream.
std::string alone(const std::string& part, const std::string& options) {
  return fmt::format(R"({{"{}": {{{}"norms": "none", "residual": false}}}})", part, options);
}

constexpr std::string_view kSelfAttention = R"({"attention": {"causal": false}})";

Network whisper_frames(std::int64_t mel, std::int64_t frames) {
  Network network{"frames", fmt::format(R"("sequence": {}, "position": "none")", frames), {}};
  network.layers.add("stem",
                     fmt::format("[{}]", alone("convolution_1d", fmt::format(R"("inputs": {}, "activate": true, )"
                                                                             R"("input_gradient": false, )",
                                                                             mel))));
  return network;
}

Network whisper_encoder(ConfigReader& reader, std::int64_t tokens) {
  const std::int64_t heads = size(reader, "encoder_attention_heads", kMaxWidth);
  check_head_width(reader, said_size(reader, "hidden", {"d_model"}), {reader.find({"encoder_attention_heads"}), heads});
  Network network{"encoder",
                  fmt::format(R"("sequence": {}, "position": "none", "heads": {}, "kv_heads": {}, "ffn_hidden": {})",
                              tokens, heads, heads, size(reader, "encoder_ffn_dim", kMaxWidth)),
                  {}};
  for (std::int64_t i = size(reader, "encoder_layers", kMaxLayers); i > 0; --i)
    network.layers.add("layer", fmt::format(R"([{}, "mlp"])", kSelfAttention));
  network.layers.begin_with(alone("convolution_1d", R"("stride": 2, "activate": true, "positions": "fixed", )"));
  network.layers.end_with(alone("output_norm", ""));
  return network;
}

void read_whisper(ConfigReader& reader) {
  purpose(reader, {"ForConditionalGeneration", "WhisperModel"});
  if (!reader.flag({"is_encoder_decoder"}, true))
    reader.refuse(reader.find({"is_encoder_decoder"}), "'is_encoder_decoder' must be true in this family");
  reader.take("layers", {"decoder_layers"});
  reader.take("hidden", {"d_model"});
  reader.take("heads", {"decoder_attention_heads"});
  reader.set("kv_heads", reader.setting("heads"));
  check_head_width(reader, said_size(reader, "hidden", {"d_model"}),
                   said_size(reader, "heads", {"decoder_attention_heads"}));
  reader.take("ffn_hidden", {"decoder_ffn_dim"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  require_text(reader, "activation_function", {"gelu", "gelu_new", "gelu_fast"});
  reader.set("activation", "gelu");
  reader.set("norm", "layer_norm");
  reader.set("position", "learned");
  reader.set("biases", true);
  reader.set("dropout", reader.real({"dropout"}, 0) > 0, "dropout");
  note_layer_drop(reader, {"encoder_layerdrop"});
  note_layer_drop(reader, {"decoder_layerdrop"});
  reader.find({"num_hidden_layers", "attention_dropout", "activation_dropout", "init_std", "scale_embedding",
               "apply_spec_augment", "mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob",
               "mask_feature_length", "mask_feature_min_masks", "classifier_proj_size", "use_weighted_layer_sum",
               "median_filter_width", "forced_decoder_ids"});
  const std::int64_t tokens = size(reader, "max_source_positions", kMaxTokens), hidden = reader.setting("hidden");
  const Network frames = whisper_frames(size(reader, "num_mel_bins", 10'000), 2 * tokens);
  const Network encoder = whisper_encoder(reader, tokens);
  const std::int64_t attentions = encoder.layers.size() + 2 * reader.setting("layers");
  for (std::int64_t i = 0; i < reader.setting("layers"); ++i)
    reader.layers().add("layer", fmt::format(R"(["attention", {{"cross_attention": {{"keys": {}}}}}, "mlp"])", tokens));
  reader.front() = {frames, encoder};
  reader.ends().network = "decoder";
  reader.set_sequence(size(reader, "max_target_positions", kMaxTokens));
  reader.leave_out({"max_source_positions",
                    fmt::format("the fixed positions of the encoder, which are not trained; samples have {} frames of "
                                "audio",
                                2 * tokens),
                    tokens * hidden});
  reader.note("d_model", fmt::format("keys have no biases in this family and {} of them here", attentions * hidden));
}

/// A list of positive integers, one for each convolution.
std::vector<std::int64_t> convolution_list(ConfigReader& reader, std::string_view key, std::int64_t most) {
  const FoundKey found = reader.find({key});
  if (!found.is_set() || found.value->kind != Node::Kind::sequence || found.value->items.empty() ||
      found.value->items.size() > 64)
    reader.fail(found, fmt::format("'{}' must be a list with one integer for each convolution, from 1 to 64", key));
  std::vector<std::int64_t> all;
  for (const Node& item : found.value->items) {
    core::OptionInfo info;
    info.minimum = 1;
    info.maximum = static_cast<double>(most);
    all.push_back(std::get<std::int64_t>(import::read_value(item, info, std::string(key))));
  }
  return all;
}

/// The convolutions that make frames of audio, each a network, and the width and number of the frames.
struct Features {
  std::vector<Network> networks;
  std::int64_t width = 0, frames = kAudioSamples;
};

Features read_features(ConfigReader& reader) {
  require_text(reader, "feat_extract_norm", {"group", "layer"});
  require_text(reader, "feat_extract_activation", {"gelu", "gelu_new"});
  const bool layer_norms = reader.text({"feat_extract_norm"}, "group") == "layer";
  const bool bias = reader.flag({"conv_bias"}, false);
  const std::vector<std::int64_t> widths = convolution_list(reader, "conv_dim", 100'000),
                                  strides = convolution_list(reader, "conv_stride", 1'024),
                                  kernels = convolution_list(reader, "conv_kernel", 65'536);
  if (widths.size() != strides.size() || widths.size() != kernels.size())
    reader.fail(reader.find({"conv_dim"}), "'conv_dim', 'conv_stride' and 'conv_kernel' must be lists of one length");
  Features result;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    result.frames = (result.frames - kernels[i]) / strides[i] + 1;
    if (result.frames < 1)
      reader.fail(reader.find({"conv_stride"}),
                  fmt::format("'conv_stride' leaves no frame of {} samples of audio", kAudioSamples));
    const std::string norm = layer_norms ? "layer" : i == 0 ? "group" : "none";
    Network network{
        fmt::format("features{}", i + 1), fmt::format(R"("hidden": {}, "sequence": {})", widths[i], result.frames), {}};
    network.layers.add(
        "layer",
        fmt::format("[{}]", alone("convolution_1d",
                                  fmt::format(R"("inputs": {}, "kernel": {}, "stride": {}, "bias": {}, )"
                                              R"("norm": "{}", "activate": true, "input_gradient": {}, )",
                                              i == 0 ? 1 : widths[i - 1], kernels[i], strides[i], bias, norm, i > 0))));
    result.networks.push_back(network);
  }
  result.width = widths.back();
  if (reader.flag({"feat_proj_layer_norm"}, true)) result.networks.back().layers.end_with(alone("output_norm", ""));
  return result;
}

/// Convolutions of positions, which are added to the frames that they are of.
std::string position_convolution(ConfigReader& reader, bool norms_before) {
  const std::int64_t kernel = size(reader, "num_conv_pos_embeddings", 65'536);
  const std::int64_t groups = size(reader, "num_conv_pos_embedding_groups", kMaxWidth);
  if (reader.setting("hidden") % groups != 0)
    reader.fail(reader.find({"num_conv_pos_embedding_groups"}),
                "'num_conv_pos_embedding_groups' must divide 'hidden_size'");
  reader.leave_out({"num_conv_pos_embeddings", "norms of the weights of the positions' convolution", kernel});
  return fmt::format(
      R"({{"convolution_1d": {{"kernel": {}, "groups": {}, "activate": true, "norms": "{}", "residual": true}}}})",
      kernel, groups, norms_before ? "none" : "after");
}

/// What pre-training has besides, in whose place is an output for each frame.
void leave_out_quantizer(ConfigReader& reader, std::int64_t features) {
  if (!reader.config().architecture.ends_with("ForPreTraining")) return;
  const std::int64_t groups = size(reader, "num_codevector_groups", 1'000),
                     vectors = size(reader, "num_codevectors_per_group", 100'000),
                     width = size(reader, "codevector_dim", 100'000),
                     projected = size(reader, "proj_codevector_dim", 100'000);
  reader.leave_out(
      {"architectures",
       "the codes that pre-training predicts and their projections, in whose place is an output for each "
       "frame",
       vectors * width + groups * vectors * (features + 1) + projected * (reader.setting("hidden") + 1 + width + 1)});
}

void read_wav2vec2(ConfigReader& reader) {
  purpose(reader, {"ForCTC", "Wav2Vec2Model", "HubertModel", "ForPreTraining"});
  reader.take("layers", {"num_hidden_layers"});
  reader.take("hidden", {"hidden_size"});
  reader.take("heads", {"num_attention_heads"});
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::plain);
  reader.take("vocabulary", {"vocab_size"});
  reader.set("norm", "layer_norm");
  reader.set("position", "none");
  reader.set("biases", true);
  reader.set("tied_embeddings", false);
  reader.set("dropout", reader.real({"hidden_dropout"}, 0) > 0, "hidden_dropout");
  note_layer_drop(reader, {"layerdrop"});
  require_false(reader, "add_adapter", "convolutions behind the encoder are not modelled");
  require_false(reader, "conv_pos_batch_norm", "a batch norm before the positions' convolution is not modelled");
  if (const FoundKey adapter = reader.find({"adapter_attn_dim"}); adapter.is_set())
    reader.refuse(adapter, "'adapter_attn_dim': adapters in every layer are not modelled");
  reader.find({"activation_dropout",
               "adapter_kernel_size",
               "adapter_stride",
               "num_adapter_layers",
               "apply_spec_augment",
               "attention_dropout",
               "classifier_proj_size",
               "contrastive_logits_temperature",
               "ctc_loss_reduction",
               "ctc_zero_infinity",
               "diversity_loss_weight",
               "feat_extract_dropout",
               "feat_proj_dropout",
               "feat_quantizer_dropout",
               "final_dropout",
               "gradient_checkpointing",
               "hidden_dropout_prob",
               "num_feat_extract_layers",
               "num_negatives",
               "output_hidden_size",
               "tdnn_dim",
               "tdnn_dilation",
               "tdnn_kernel",
               "tokenizer_class",
               "use_weighted_layer_sum",
               "xvector_output_dim"});
  reader.find({"mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_time_selection", "mask_time_other",
               "mask_time_min_space", "mask_feature_prob", "mask_feature_length", "mask_feature_min_masks"});
  reader.find({"mask_channel_length", "mask_channel_min_space", "mask_channel_other", "mask_channel_prob",
               "mask_channel_selection", "codevector_dim", "proj_codevector_dim", "num_codevector_groups",
               "num_codevectors_per_group"});
  const bool norms_before = reader.flag({"do_stable_layer_norm"}, false);
  const Features features = read_features(reader);
  const std::string norms = norms_before ? "before" : "after";
  for (std::int64_t i = 0; i < reader.setting("layers"); ++i)
    reader.layers().add(
        "layer",
        fmt::format(R"([{{"attention": {{"causal": false, "norms": "{0}"}}}}, {{"mlp": {{"norms": "{0}"}}}}])", norms));
  reader.layers().begin_with(position_convolution(reader, norms_before));
  reader.layers().begin_with(alone("linear", fmt::format(R"("inputs": {}, )", features.width)));
  reader.front() = features.networks;
  reader.ends().embedding = false;
  reader.ends().network = "encoder";
  reader.set_sequence(features.frames);
  leave_out_quantizer(reader, features.width);
  reader.leave_out({"mask_time_prob",
                    fmt::format("the vector of masked frames; samples have {} numbers of audio, {} frames",
                                kAudioSamples, features.frames),
                    reader.setting("hidden")});
  reader.leave_out({"vocab_size", "biases of the output layer", reader.setting("vocabulary")});
}

constexpr std::int64_t kMelFrames = 1'600;  // of 10 ms

constexpr std::string_view kParakeetEncoder =
    R"({"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 8, "intermediate_size": 4096,
        "hidden_act": "silu", "attention_bias": true, "convolution_bias": true, "conv_kernel_size": 9,
        "subsampling_factor": 8, "subsampling_conv_channels": 256, "num_mel_bins": 80, "dropout": 0.1,
        "layerdrop": 0.1, "subsampling_conv_kernel_size": 3, "subsampling_conv_stride": 2})";

/// Sizes of a Conformer whose frames are made by convolutions over time and mel channels.
struct Conformer {
  std::int64_t hidden = 0, ffn_hidden = 0, heads = 0, layers = 0, kernel = 0;
  std::int64_t mel = 0, channels = 0, halvings = 0;
  bool biases = true, convolution_biases = true, dropout = false;
};

Conformer conformer_sizes(ConfigReader& reader) {
  Conformer sizes;
  sizes.hidden = size(reader, "hidden_size", kMaxWidth);
  sizes.ffn_hidden = size(reader, "intermediate_size", kMaxWidth);
  sizes.heads = size(reader, "num_attention_heads", kMaxWidth);
  sizes.layers = size(reader, "num_hidden_layers", kMaxLayers);
  sizes.kernel = size(reader, "conv_kernel_size", 65'536);
  sizes.mel = size(reader, "num_mel_bins", 10'000);
  sizes.channels = size(reader, "subsampling_conv_channels", 100'000);
  sizes.biases = reader.flag({"attention_bias"}, true);
  sizes.convolution_biases = reader.flag({"convolution_bias"}, true);
  sizes.dropout = reader.real({"dropout"}, 0) > 0;
  check_head_width(reader, {reader.find({"hidden_size"}), sizes.hidden},
                   {reader.find({"num_attention_heads"}), sizes.heads});
  if (reader.integer({"num_key_value_heads"}, sizes.heads) != sizes.heads)
    reader.refuse(reader.find({"num_key_value_heads"}), "'num_key_value_heads' must be 'num_attention_heads'");
  require_text(reader, "hidden_act", {"silu", "swish"});
  if (reader.integer({"subsampling_conv_stride"}, 2) != 2 || reader.integer({"subsampling_conv_kernel_size"}, 3) != 3)
    reader.refuse(reader.find({"subsampling_conv_stride"}), "'subsampling_conv_stride' must be 2, and the kernel 3");
  const std::int64_t factor = size(reader, "subsampling_factor", 64);
  while ((std::int64_t{1} << sizes.halvings) < factor) ++sizes.halvings;
  if (factor < 2 || std::int64_t{1} << sizes.halvings != factor || sizes.mel % factor != 0)
    reader.fail(reader.find({"subsampling_factor"}),
                "'subsampling_factor' must be a power of 2 that divides 'num_mel_bins'");
  note_layer_drop(reader, {"layerdrop"});
  reader.find({"activation_dropout", "attention_dropout", "dropout_positions", "scale_input"});
  return sizes;
}

/// A convolution of all channels, and behind it of each channel by itself and of single positions, each with half of
/// the frames and mel channels (Rekesh et al. 2023, section 2.1).
std::vector<Network> halving_networks(const Conformer& sizes) {
  std::vector<Network> all;
  for (std::int64_t i = 0; i < sizes.halvings; ++i) {
    const std::int64_t frames = kMelFrames >> (i + 1), mel = sizes.mel >> (i + 1);
    Network network{fmt::format("frames{}", i + 1),
                    fmt::format(R"("hidden": {}, "sequence": {})", sizes.channels, frames * mel),
                    {}};
    const std::string parts =
        i == 0 ? alone("convolution", R"("inputs": 1, "stride": 2, "activate": true, "input_gradient": false, )")
               : alone("convolution", fmt::format(R"("stride": 2, "groups": {}, )", sizes.channels)) + ", " +
                     alone("convolution", R"("kernel": 1, "activate": true, )");
    network.layers.add("stem", "[" + parts + "]");
    all.push_back(network);
  }
  return all;
}

void read_parakeet(ConfigReader& reader) {
  purpose(reader, {"ForCTC"});
  const FoundKey encoder = reader.find({"encoder_config"});
  if (!encoder.is_set() || encoder.value->kind != Node::Kind::mapping)
    reader.fail(encoder, "'encoder_config' must be an object: the sizes of the encoder");
  ModelConfig of_encoder = reader.config();
  ConfigReader inner(*encoder.value, *encoder.value, kParakeetEncoder, of_encoder);
  const Conformer sizes = conformer_sizes(inner);
  judge_remaining_keys(inner, *encoder.value, "'encoder_config'");
  for (const Refusal& one : inner.refusals()) reader.refuse(one.line, one.text);
  for (const ConfigNote& note : of_encoder.without_effect) reader.note(note.key, note.text);
  reader.find({"ctc_loss_reduction", "ctc_zero_infinity"});
  reader.set("hidden", sizes.hidden, "encoder_config");
  reader.set("heads", sizes.heads, "encoder_config");
  reader.set("kv_heads", sizes.heads);
  reader.set("ffn_hidden", sizes.ffn_hidden, "encoder_config");
  reader.take("vocabulary", {"vocab_size"});
  reader.set("norm", "layer_norm");
  reader.set("activation", "gelu");
  reader.set("position", "none");
  reader.set("biases", sizes.biases, "encoder_config");
  reader.set("tied_embeddings", false);
  reader.set("dropout", sizes.dropout, "encoder_config");
  const std::string inside =
      fmt::format(R"("mlp", "relative_attention", {{"conformer_convolution": {{"kernel": {}, "bias": {}}}}})",
                  sizes.kernel, sizes.convolution_biases);
  reader.layers().add(
      "entrance", fmt::format("[{}]", alone("linear", fmt::format(R"("inputs": {}, )",
                                                                  sizes.channels * (sizes.mel >> sizes.halvings)))));
  for (std::int64_t i = 1; i < sizes.layers; ++i)
    reader.layers().add("layer", fmt::format(R"([{}, {{"mlp": {{"norms": "both"}}}}])", inside));
  reader.layers().add("last", fmt::format(R"([{}, "mlp"])", inside));
  reader.front() = halving_networks(sizes);
  reader.ends().embedding = false;
  reader.ends().network = "encoder";
  reader.set_sequence(kMelFrames >> sizes.halvings);
  reader.leave_out({"vocab_size",
                    fmt::format("biases of the output layer; samples have {} frames of audio", kMelFrames),
                    reader.setting("vocabulary")});
}

constexpr std::string_view kFrameEncoder =
    R"({"vocab_size": 32, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout": 0.1, "attention_dropout": 0.1,
        "layerdrop": 0.1, "feat_extract_norm": "group", "feat_extract_activation": "gelu",
        "conv_dim": [512, 512, 512, 512, 512, 512, 512], "conv_stride": [5, 2, 2, 2, 2, 2, 2],
        "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_bias": false, "num_conv_pos_embeddings": 128,
        "num_conv_pos_embedding_groups": 16, "do_stable_layer_norm": false, "num_codevectors_per_group": 320,
        "num_codevector_groups": 2, "codevector_dim": 256, "proj_codevector_dim": 256, "feat_proj_layer_norm": true,
        "initializer_range": 0.02, "layer_norm_eps": 1e-05})";

}  // namespace

std::vector<Family> audio_families() {
  return {
      {"hubert", "HubertConfig", kFrameEncoder, read_wav2vec2},
      {"parakeet_ctc", "ParakeetCTCConfig", R"({"vocab_size": 1025})", read_parakeet},
      {"wav2vec2", "Wav2Vec2Config", kFrameEncoder, read_wav2vec2},
      {"whisper", "WhisperConfig",
       R"({"vocab_size": 51865, "num_mel_bins": 80, "encoder_layers": 4, "encoder_attention_heads": 6,
           "decoder_layers": 4, "decoder_attention_heads": 6, "decoder_ffn_dim": 1536, "encoder_ffn_dim": 1536,
           "d_model": 384, "dropout": 0.0, "activation_function": "gelu", "max_source_positions": 1500,
           "max_target_positions": 448, "tie_word_embeddings": true, "encoder_layerdrop": 0.0,
           "decoder_layerdrop": 0.0})",
       read_whisper, " is_encoder_decoder "},
  };
}

}  // namespace manyworlds::experiments::models
