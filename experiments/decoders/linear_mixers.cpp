// MiniMax-01 and M1: linear attention with a constant decay (lightning attention) in seven of eight layers, attention
// in the others, and experts in all. Defaults of `minimax` are those of its class at version 4.57.3 of transformers.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

/// Returns whether each layer has attention: by name, by 1 for attention and 0 for linear attention, or every second.
std::vector<bool> attention_layers(ConfigReader& reader) {
  if (const FoundKey types = reader.find({"layer_types"}); types.is_set())
    return layers_named(reader, types, "full_attention", "linear_attention");
  std::vector<bool> attends;
  if (const FoundKey list = reader.find({"attn_type_list"}); list.is_set()) return layers_named(reader, list, "1", "0");
  if (reader.config().family != "minimax")
    throw core::InputError("'attn_type_list' is missing: which layers have linear attention (0)", reader.file());
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer) attends.push_back(layer % 2 == 0);
  return attends;
}

/// What stands before attention and experts is scaled and added to them, behind the norm or before it: the same bytes.
void read_minimax(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  read_window(reader);
  std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "window"; });
  reader.set("biases", false);
  read_mixtral_experts(reader);
  if (reader.integer({"shared_intermediate_size"}, 0) > 0)
    reader.take("shared_ffn_hidden", {"shared_intermediate_size"});
  note_inside_kernels(
      reader, {"full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor", "linear_attn_beta_factor",
               "mlp_alpha_factor", "mlp_beta_factor", "layernorm_full_attention_alpha", "layernorm_full_attention_beta",
               "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta", "layernorm_mlp_alpha",
               "layernorm_mlp_beta"});
  reader.find({"postnorm", "shared_moe_mode", "router_jitter_noise"});
  const std::int64_t width =
      reader.setting("head_dim") > 0 ? reader.setting("head_dim") : reader.setting("hidden") / reader.setting("heads");
  const std::string linear =
      fmt::format(R"([{{"linear_attention": {{"heads": {}, "width": {}, "chunk": {}}}}}, "experts"])",
                  reader.setting("heads"), width, std::max<std::int64_t>(reader.integer({"block_size"}, 256), 1));
  for (const bool attends : attention_layers(reader))
    reader.layers().add(attends ? "full" : "linear", attends ? R"(["attention", "experts"])" : linear);
}

/// Returns whether each layer has attention: by name, or by a list of those that have.
std::vector<bool> lfm_attention(ConfigReader& reader) {
  if (const FoundKey types = reader.find({"layer_types"}); types.is_set())
    return layers_named(reader, types, "full_attention", "conv");
  const FoundKey list = reader.find({"full_attn_idxs"});
  std::vector<bool> attends(static_cast<std::size_t>(reader.setting("layers")), !list.is_set());
  if (!list.is_set()) return attends;
  if (list.value->kind != Node::Kind::sequence) reader.fail(list, "'full_attn_idxs' must be a list of layers");
  for (const Node& item : list.value->items) {
    core::OptionInfo info;
    info.minimum = 0;
    info.maximum = static_cast<double>(attends.size()) - 1;
    attends[static_cast<std::size_t>(std::get<std::int64_t>(import::read_value(item, info, list.key)))] = true;
  }
  return attends;
}

/// Two thirds of the width that the file says, times a factor, and rounded up to a multiple (Lfm2MLP).
void adjust_width(ConfigReader& reader) {
  if (!reader.flag({"block_auto_adjust_ff_dim"}, true)) {
    reader.find({"block_ffn_dim_multiplier", "block_multiple_of"});
    return;
  }
  const auto width = static_cast<double>(2 * reader.setting("ffn_hidden") / 3);
  const std::int64_t multiple = reader.integer({"block_multiple_of"}, 256);
  const double factor = reader.real({"block_ffn_dim_multiplier"}, 1);
  if (multiple < 1 || factor <= 0 || factor > 1'000)
    reader.fail(reader.find({"block_multiple_of"}),
                "'block_multiple_of' must be 1 or more, and 'block_ffn_dim_multiplier' above 0 and at most 1000");
  std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "ffn_hidden"; });
  reader.set("ffn_hidden", (static_cast<std::int64_t>(factor * width) + multiple - 1) / multiple * multiple,
             "block_auto_adjust_ff_dim");
}

void read_lfm_sizes(ConfigReader& reader) {
  read_decoder(reader);
  if (const FoundKey tied = reader.find({"tie_embedding"}); tied.is_set()) {
    std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "tied_embeddings"; });
    reader.take("tied_embeddings", {"tie_embedding"});
  }
  read_grouped_heads(reader);
  reader.take("ffn_hidden", {"block_ff_dim", "intermediate_size"});
  reader.set("activation", "swiglu");
  reader.set("biases", false);
  reader.set("query_key_norm", true);
  refuse_flag(reader, "conv_bias", "no published model of this family has biases of convolutions");
  reader.find({"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu",
               "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "intermediate_size",
               "num_heads", "use_pos_enc"});
}

/// Adds layers of convolutions or attention, the first `dense` ones with a network and all behind them with experts.
void add_lfm_layers(ConfigReader& reader, std::int64_t dense, const std::string& experts) {
  const std::int64_t tokens = std::max<std::int64_t>(reader.integer({"conv_L_cache"}, 3), 1);
  std::int64_t layer = 0;
  for (const bool attends : lfm_attention(reader)) {
    const bool routed = layer++ >= dense;
    const std::string mixer =
        attends ? R"("attention")" : fmt::format(R"({{"short_convolution": {{"convolution": {}}}}})", tokens);
    reader.layers().add(fmt::format("{}{}", attends ? "full" : "convolution", routed ? "_routed" : ""),
                        fmt::format("[{}, {}]", mixer, routed ? experts : R"("mlp")"));
  }
}

void read_lfm2(ConfigReader& reader) {
  read_lfm_sizes(reader);
  adjust_width(reader);
  add_lfm_layers(reader, reader.setting("layers"), "");
}

void read_lfm2_moe(ConfigReader& reader) {
  read_lfm_sizes(reader);
  read_mixtral_experts(reader);
  reader.take("expert_ffn_hidden", {"moe_intermediate_size"});
  add_lfm_layers(reader, reader.integer({"num_dense_layers"}, 2),
                 fmt::format(R"({{"experts": {{"correction_bias": {}}}}})", reader.flag({"use_expert_bias"}, true)));
}

constexpr std::string_view kSaid = R"({"hidden_act": "silu", "tie_word_embeddings": false})";
constexpr std::string_view kKeys = " attn_type_list layer_types ";

}  // namespace

std::vector<Family> linear_mixer_families() {
  return {
      {"lfm2", "Lfm2Config",
       R"({"vocab_size": 65536, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": true, "conv_L_cache": 3,
           "norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 1000000.0,
           "max_position_embeddings": 128000})",
       read_lfm2, " layer_types "},
      {"lfm2_moe", "Lfm2MoeConfig",
       R"({"vocab_size": 65536, "hidden_size": 2048, "intermediate_size": 7168, "moe_intermediate_size": 1792,
           "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": true,
           "conv_L_cache": 3, "num_dense_layers": 2, "num_experts_per_tok": 4, "num_experts": 32,
           "norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 1000000.0,
           "max_position_embeddings": 128000})",
       read_lfm2_moe, " layer_types "},
      {"minimax", "MiniMaxConfig",
       R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": null, "hidden_act": "silu",
           "tie_word_embeddings": false, "num_experts_per_tok": 2, "num_local_experts": 8, "block_size": 256,
           "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 1000000.0,
           "max_position_embeddings": 131072})",
       read_minimax, kKeys},
      {"minimax_m1", "", kSaid, read_minimax, kKeys},
      {"minimax_text_01", "", kSaid, read_minimax, kKeys},
  };
}

}  // namespace manyworlds::experiments::models
