// MiniMax-01 and M1: linear attention with a constant decay (lightning attention) in seven of eight layers, attention
// in the others, and experts in all. Defaults of `minimax` are those of its class at version 4.57.3 of transformers.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/families.hpp"

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

constexpr std::string_view kSaid = R"({"hidden_act": "silu", "tie_word_embeddings": false})";
constexpr std::string_view kKeys = " attn_type_list layer_types ";

}  // namespace

std::vector<Family> lightning_families() {
  return {
      {"minimax", "MiniMaxConfig",
       R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": null, "hidden_act": "silu",
           "tie_word_embeddings": false, "num_experts_per_tok": 2, "num_local_experts": 8, "block_size": 256,
           "rms_norm_eps": 1e-05, "initializer_range": 0.02, "rope_theta": 1000000.0})",
       read_minimax, kKeys},
      {"minimax_m1", "", kSaid, read_minimax, kKeys},
      {"minimax_text_01", "", kSaid, read_minimax, kKeys},
  };
}

}  // namespace manyworlds::experiments::models
