#include "experiments/model_keys/layer_kinds.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace manyworlds::experiments::models {
namespace {

using import::Entry;
using import::Node;

/// Returns whether a key says anything: it is not null, false, 0 or empty.
bool says_something(const Node& value) {
  if (value.kind == Node::Kind::sequence) return !value.items.empty();
  if (value.kind == Node::Kind::mapping) return !value.entries.empty();
  return value.kind == Node::Kind::scalar && value.text != "false" && value.text != "0" && value.text != "0.0" &&
         !value.text.empty();
}

bool is_more_than_one(const Node& value) {
  return says_something(value) && value.text != "1";
}

struct UnknownLayers {
  std::string_view key;
  std::string_view layers;  // what the key says that there is
  bool (*present)(const Node& value) = says_something;
};

constexpr UnknownLayers kByKey[] = {
    {"index_topk", "attention to the tokens that an indexer selects (DeepSeek sparse attention), in every layer"},
    {"sparse_attention_config", "sparse attention"},
    {"compress_ratios", "attention to compressed tokens, with a ratio for each layer"},
    {"hc_mult", "hyper-connections, several residual streams, in every layer"},
    {"o_lora_rank", "a low-rank output projection of attention, in every layer"},
    {"attn_output_gate", "a gate on attention's output, in layers of full attention"},
    {"attention_chunk_size", "chunked attention"},
    {"dual_chunk_attention_config", "dual-chunk attention"},
    {"no_rope_layer_interval", "layers without rotary positions", is_more_than_one},
    {"interleave_moe_layer_step", "experts in only one of so many layers", is_more_than_one},
    {"moe_latent_size", "experts that work on a narrower vector than the residual stream"},
    {"mamba_num_heads", "Mamba (state-space) layers"},
    {"mamba_d_state", "Mamba (state-space) layers"},
    {"ssm_state_size", "Mamba (state-space) layers"},
    {"state_size", "Mamba (state-space) layers"},
    {"linear_num_value_heads", "gated delta nets (linear attention)"},
    {"linear_attn_config", "linear attention"},
    {"full_attention_interval", "linear attention in all layers but one of so many", is_more_than_one},
    {"alibi", "positions by biases of the attention scores (ALiBi)"},
    {"parallel_attn", "attention and feed-forward network side by side on one input"},
    {"new_decoder_architecture", "attention and feed-forward network side by side on one input"},
    {"parallel_residual", "attention and feed-forward network side by side on one input"},
    {"is_encoder_decoder", "an encoder beside the decoder"},
    {"add_cross_attention", "cross-attention"},
    {"cross_attention_layers", "cross-attention in some layers"},
    {"sandwich_norm", "norms before and behind attention and feed-forward network"},
    {"use_sandwich_norm", "norms before and behind attention and feed-forward network"},
    {"cla_share_factor", "keys and values that several layers share"},
    {"num_kv_shared_layers", "keys and values that several layers share"},
    {"n_hash_layers", "layers whose experts are chosen by a hash of the token"},
    {"num_hash_layers", "layers whose experts are chosen by a hash of the token"},
};

constexpr std::string_view kStateSpace = "Mamba (state-space) layers";
constexpr std::string_view kSelectiveScan =
    "Mamba-1 layers, whose scan has a state for every channel and no matrix products";
constexpr std::string_view kSeveralStreams =
    "embeddings of each layer, several residual streams (AltUp), branches of low rank and keys that layers share";
constexpr std::string_view kKeysAsValues =
    "keys that are values, too, in layers without windows, whose heads are wider, and, where there are experts, a "
    "network beside them";

/// Families known to have such layers, also where their keys have defaults.
const std::map<std::string_view, std::string_view>& by_family() {
  static const std::map<std::string_view, std::string_view> all{
      {"albert", "layers that share their weights"},
      {"deberta-v2", "scores of positions beside those of tokens (disentangled attention)"},
      {"deci", "layers that differ from one another"},
      {"falcon_h1", "attention and Mamba-2 side by side on one input"},
      {"falcon_mamba", kSelectiveScan},
      {"gemma3n_text", kSeveralStreams},
      {"gemma4_text", kKeysAsValues},
      {"jamba", kSelectiveScan},
      {"kimi_linear", "linear attention with a decay for each channel (Kimi Delta Attention) in most layers"},
      {"longcat_flash", "two attentions in a layer, and experts beside them that may do nothing"},
      {"mamba", kSelectiveScan},
      {"minimax_m3", "attention to blocks of keys that an index selects"},
      {"recurrent_gemma", "recurrent layers in place of attention"},
      {"rwkv", "recurrent layers in place of attention"},
      {"rwkv5", "recurrent layers in place of attention"},
      {"rwkv6", "recurrent layers in place of attention"},
      {"rwkv7", "recurrent layers in place of attention"},
      {"zamba2", "blocks of attention whose weights several layers share, beside Mamba-2"},
  };
  return all;
}

/// What the entries of `layer_types` and its relatives are called, and what they are.
const std::map<std::string_view, std::string_view>& layer_names() {
  static const std::map<std::string_view, std::string_view> all{
      {"linear_attention", "gated delta nets or another linear attention"},
      {"chunked_attention", "chunked attention"},
      {"mamba", kStateSpace},
      {"mamba2", kStateSpace},
      {"ssm", kStateSpace},
      {"M", kStateSpace},
      {"conv", "convolutions"},
      {"recurrent", "recurrent layers"},
      {"hybrid", "attention and state-space layers side by side"},
  };
  return all;
}

/// Refuses the entries of a list of layers that are not in `known`, each kind with its layers.
void refuse_entries(ConfigReader& reader, const Entry& list, const std::vector<std::string>& entries,
                    const std::vector<std::string_view>& known) {
  std::map<std::string, std::vector<std::size_t>> layers;
  for (std::size_t layer = 0; layer < entries.size(); ++layer)
    if (std::find(known.begin(), known.end(), entries[layer]) == known.end()) layers[entries[layer]].push_back(layer);
  for (const auto& [name, at] : layers) {
    const auto meaning = layer_names().find(name);
    reader.refuse(
        list.line,
        fmt::format("'{}' has '{}' in {}: {} not modelled", list.key, name.substr(0, 40), layer_ranges(at),
                    meaning == layer_names().end() ? "such layers are" : fmt::format("{} are", meaning->second)));
  }
}

std::vector<std::string> texts_of(const Node& list) {
  std::vector<std::string> texts;
  for (const Node& item : list.items) texts.push_back(item.text);
  return texts;
}

/// Windows in some layers are modelled if these are one of so many.
void refuse_windows(ConfigReader& reader, const Entry& list) {
  std::vector<std::size_t> windowed;
  for (std::size_t layer = 0; layer < list.value.items.size(); ++layer)
    if (list.value.items[layer].text == "sliding_attention") windowed.push_back(layer);
  if (windowed.empty() || period_of(windowed, list.value.items.size()) > 0) return;
  reader.refuse(list.line,
                fmt::format("'{}' has 'sliding_attention' in {}: windows are modelled in all layers, or in one "
                            "of so many from the first on",
                            list.key, layer_ranges(windowed)));
}

/// Lists with an entry for each layer.
void refuse_listed_layers(ConfigReader& reader, const Entry& entry, bool refused_by_name) {
  if (entry.key == "hybrid_override_pattern" && entry.value.kind == Node::Kind::scalar) {
    std::vector<std::string> letters;
    for (const char c : entry.value.text) letters.emplace_back(1, c);
    return refuse_entries(reader, entry, letters, {"*", "-", "E"});
  }
  if (entry.value.kind != Node::Kind::sequence) return;
  if (entry.key == "layer_types") {
    refuse_entries(reader, entry, texts_of(entry.value), {"full_attention", "sliding_attention"});
    if (!refused_by_name) refuse_windows(reader, entry);
  }
  if (entry.key == "layers_block_type")
    refuse_entries(reader, entry, texts_of(entry.value), {"attention", "moe", "mlp"});
  std::vector<std::size_t> zeros;
  for (std::size_t layer = 0; layer < entry.value.items.size(); ++layer)
    if (entry.value.items[layer].text == "0") zeros.push_back(layer);
  if (entry.key == "attn_type_list" && !zeros.empty())
    reader.refuse(entry.line, fmt::format("'attn_type_list' has 0 in {}: lightning (linear) attention is not modelled",
                                          layer_ranges(zeros)));
  if (entry.key == "no_rope_layers" && !zeros.empty())
    reader.refuse(entry.line, fmt::format("'no_rope_layers' has 0 in {}: layers without rotary positions are not "
                                          "modelled",
                                          layer_ranges(zeros)));
}

/// Returns whether a part of a layer ("attention", "ffn") is absent or replaced.
bool is_absent(const Node& block, std::string_view part) {
  const Node* found = block.find(part);
  if (found == nullptr) return false;
  for (const char* key : {"no_op", "replace_with_linear"})
    if (const Node* value = found->find(key); value != nullptr && value->text == "true") return true;
  return false;
}

/// Layers that a search of architectures has varied (Nemotron-Super and -Ultra).
void refuse_blocks(ConfigReader& reader, const Entry& blocks) {
  std::vector<std::size_t> attention, feed_forward;
  std::map<std::string, std::size_t> widths;
  for (std::size_t layer = 0; layer < blocks.value.items.size(); ++layer) {
    const Node& block = blocks.value.items[layer];
    if (is_absent(block, "attention")) attention.push_back(layer);
    if (is_absent(block, "ffn")) feed_forward.push_back(layer);
    const Node* ffn = block.find("ffn");
    const Node* width = ffn == nullptr ? nullptr : ffn->find("ffn_mult");
    if (width != nullptr) ++widths[width->text];
  }
  std::string what;
  const auto add = [&](const std::string& more) { what += (what.empty() ? "" : ", ") + more; };
  if (!attention.empty()) add(fmt::format("no attention in {}", layer_ranges(attention)));
  if (!feed_forward.empty()) add(fmt::format("no feed-forward network in {}", layer_ranges(feed_forward)));
  if (widths.size() > 1) add(fmt::format("{} widths of feed-forward networks", widths.size()));
  reader.refuse(blocks.line, fmt::format("'block_configs' has {}: layers that differ so are not modelled",
                                         what.empty() ? "a description of each layer" : what));
}

}  // namespace

void refuse_unknown_layers(ConfigReader& reader, const Node& config, const std::string& family, std::string_view read) {
  const auto known = by_family().find(family);
  for (const Entry& entry : config.entries) {
    if (read.find(fmt::format(" {} ", entry.key)) != std::string_view::npos) continue;
    refuse_listed_layers(reader, entry, known != by_family().end());
    if (entry.key == "block_configs" && entry.value.kind == Node::Kind::sequence) refuse_blocks(reader, entry);
    for (const UnknownLayers& one : kByKey)
      if (one.key == entry.key && one.present(entry.value))
        reader.refuse(entry.line, fmt::format("'{}': {}: not modelled", entry.key, one.layers));
  }
  if (known == by_family().end()) return;
  const FoundKey type = reader.find({"model_type"});
  reader.refuse(type, fmt::format("'model_type' is '{}': {}: not modelled", family, known->second));
}

bool is_of_layer_kinds(std::string_view key) {
  constexpr std::string_view kLists[] = {"hybrid_override_pattern", "layers_block_type", "attn_type_list",
                                         "no_rope_layers", "block_configs"};
  return std::find(std::begin(kLists), std::end(kLists), key) != std::end(kLists) ||
         std::any_of(std::begin(kByKey), std::end(kByKey), [&](const UnknownLayers& one) { return one.key == key; });
}

void refuse_towers(ConfigReader& reader, const Node& document, const std::string& member) {
  for (const Entry& entry : document.entries) {
    if (entry.key != "vision_config" && entry.key != "audio_config") continue;
    if (!says_something(entry.value)) continue;
    const std::string tower = entry.key == "vision_config" ? "a vision tower" : "an audio tower";
    reader.refuse(
        entry.line,
        fmt::format("'{}': {} is not modelled{}", entry.key, tower,
                    member.empty() ? "" : fmt::format("; the language model alone is {}#{}", reader.file(), member)));
  }
}

}  // namespace manyworlds::experiments::models
