// Parts of decoders that families of models share: each maps a group of keys to settings of the model.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// Layers, width, heads and vocabulary, and what nearly all families have: RMS norms, rotary positions, no dropout.
void read_decoder(ConfigReader& reader);

/// Sizes in the words of GPT-2: layer norms, biases and a network of two matrices, with learned or rotary positions.
/// `dropout` is that of a file without the key.
void read_gpt2_sizes(ConfigReader& reader, const char* position, double dropout);

/// Heads of keys and values and their width.
void read_grouped_heads(ConfigReader& reader);

/// The low-rank projections of multi-head latent attention (DeepSeek-V2).
void read_latent_attention(ConfigReader& reader);

/// The activation, and whether the feed-forward network has a gate beside it.
enum class FeedForward : std::uint8_t { gated, plain };
void read_feed_forward(ConfigReader& reader, FeedForward kind);
/// Sets the activation of a network without a gate from a key of the family's own: ReLU, or GELU, in whose place others
/// are noted. A name that is not known is refused. `usual` is that of a file without the key.
void read_network_activation(ConfigReader& reader, Keys keys, const std::string& usual);

/// Which layers look back a window only: `layer_types` if the file has it, otherwise all of them if `window` is set.
void read_window(ConfigReader& reader);

/// Projections that carry a bias. Biases of some projections alone are left out and counted.
struct Biases {
  bool queries_keys_values = false, attention_output = false, feed_forward = false;
};
void read_biases(ConfigReader& reader, const Biases& biases, const std::string& key);

/// Experts in the words of Mixtral, of Qwen and of DeepSeek.
void read_mixtral_experts(ConfigReader& reader);
void read_qwen_experts(ConfigReader& reader);
void read_deepseek_experts(ConfigReader& reader);

/// DeepSeek-V2, DeepSeek-V3 and their relatives: latent attention and many small experts.
void read_latent_decoder(ConfigReader& reader);

/// Refuses a flag that no published model of a family has.
void refuse_flag(ConfigReader& reader, std::string_view key, std::string_view what);
/// Notes keys that are factors inside of kernels, if the file has them.
void note_inside_kernels(ConfigReader& reader, Keys keys);
/// Notes that scores have biases in place of positions (Press et al. 2022, ALiBi), which fused kernels compute.
void note_score_biases(ConfigReader& reader, const std::string& key);

/// Returns whether each layer is the first of two kinds, in a list with the name of one for each.
std::vector<bool> layers_named(ConfigReader& reader, const FoundKey& list, std::string_view kind,
                               std::string_view other);

/// Returns the tokens of a window, in layers that have one; 0 if the key is null or absent: they have none. Throws an
/// InputError at a window of 0 tokens.
std::int64_t window_of(ConfigReader& reader, Keys keys, std::int64_t otherwise = 0);

/// Adds as many layers of these parts as the model has.
void add_alike(ConfigReader& reader, const std::string& parts);

/// Layers for multi-token prediction, which are left out: a training may be without them, and inference is. Where each
/// is like the last layer, model.mtp_layers adds them.
void leave_out_next_tokens(ConfigReader& reader, bool like_last_layer = true);

}  // namespace manyworlds::experiments::models
