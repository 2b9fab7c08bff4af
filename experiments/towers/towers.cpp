#include "experiments/towers/towers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/model_keys/head_widths.hpp"
#include "experiments/model_keys/known_keys.hpp"
#include "experiments/towers/image_tower.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

constexpr std::int64_t kQwenPatches = 1'024;  // of a sample's image: 512 x 512 pixels in patches of 16
constexpr std::int64_t kMaxPatches = 1'000'000;

/// Writes the layers of a language model all of whose layers are alike, as a list.
void add_plain_layers(ConfigReader& reader) {
  if (!reader.layers().empty()) return;
  if (reader.setting("window_every") > 1)
    reader.refuse(reader.find({"layer_types"}), "windows in only some layers, behind a tower, are not modelled");
  const std::int64_t dense = reader.setting("experts") > 0 ? reader.setting("dense_layers") : reader.setting("layers");
  const bool corrected = reader.text({"topk_method"}, "") == "noaux_tc";
  const std::string experts = corrected ? R"({"experts": {"correction_bias": true}})" : R"("experts")";
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer)
    reader.layers().add(layer < dense ? "dense" : "routed",
                        fmt::format(R"(["attention", {}])", layer < dense ? R"("mlp")" : experts));
  std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "dense_layers"; });
}

/// Returns the patches of a square image.
std::int64_t square_patches(const TowerReader& tower, std::int64_t image, std::int64_t patch) {
  const std::int64_t side = image / patch;
  if (side < 1 || side * side > kMaxPatches)
    tower.fail(fmt::format("'image_size' and 'patch_size' must give from 1 to {} patches", kMaxPatches));
  return side * side;
}

void tell_image(ModelConfig& config, std::int64_t patches, std::string_view missing = {}) {
  config.left_out.push_back({"vision_config", fmt::format("{}each sample has one image of {} patches",
                                                          missing.empty() ? "further images: " : missing, patches)});
}

/// Layers of the tower in the words of SigLIP and CLIP, and the patches of a square image.
ImageTower plain_tower(TowerReader& tower) {
  ImageTower sizes;
  sizes.hidden = tower.size({"hidden_size"});
  sizes.heads = tower.size({"num_attention_heads"});
  sizes.layers = tower.size({"num_hidden_layers"}, 1'000);
  sizes.ffn_hidden = tower.size({"intermediate_size"});
  const std::int64_t patch = tower.side({"patch_size"}, 1'000), image = tower.side({"image_size"}, 100'000);
  sizes.patches = square_patches(tower, image, patch);
  sizes.inputs = tower.size({"num_channels"}, 16) * patch * patch;
  tower.keys().find({"hidden_act", "model_type", "attention_dropout"});
  check_head_width(tower.keys(), {tower.keys().find({"hidden_size"}), sizes.hidden},
                   {tower.keys().find({"num_attention_heads"}), sizes.heads});
  return sizes;
}

void read_qwen_tower(ConfigReader& reader, const Node& document, ModelConfig& config) {
  TowerReader tower(reader, document, "vision_config", "", config);
  ImageTower sizes;
  sizes.hidden = tower.size({"hidden_size"});
  sizes.heads = tower.size({"num_heads"});
  sizes.layers = tower.size({"depth"}, 1'000);
  sizes.ffn_hidden = tower.size({"intermediate_size"});
  const std::int64_t patch = tower.size({"patch_size"}, 1'000), merge = tower.size({"spatial_merge_size"}, 16);
  sizes.patches = kQwenPatches;
  sizes.inputs = tower.size({"in_channels"}, 16) * patch * patch * tower.size({"temporal_patch_size"}, 16);
  sizes.learned_positions = false;
  sizes.norms_at_end = sizes.layers > 1 ? 1 : 0;
  if (tower.size({"out_hidden_size"}) != reader.setting("hidden"))
    tower.fail("'out_hidden_size' must be 'hidden_size' of the language model");
  check_head_width(tower.keys(), {tower.keys().find({"hidden_size"}), sizes.hidden},
                   {tower.keys().find({"num_heads"}), sizes.heads});
  const FoundKey deepstack = tower.keys().find({"deepstack_visual_indexes"});
  const std::size_t further = deepstack.value == nullptr ? 0 : std::min<std::size_t>(deepstack.value->items.size(), 99);
  tower.keys().find({"hidden_act", "num_position_embeddings"});
  tower.judge_rest();
  const std::int64_t merged = sizes.hidden * merge * merge;
  const std::string mlp =
      fmt::format(R"({{"mlp": {{"inputs": {0}, "ffn_hidden": {0}, "norms": "none", "residual": false}}}})", merged);
  std::string parts = "[" + mlp;
  for (std::size_t i = 0; i < further; ++i) parts += ", " + mlp;
  reader.front() = {
      tower_network(sizes),
      single_block("merger",
                   fmt::format(R"("sequence": {}, "activation": "gelu", "biases": true, "query_key_norm": false)",
                               kQwenPatches / (merge * merge)),
                   parts + "]")};
  tell_image(config, kQwenPatches, "the table of positions and norms of further mergers; ");
}

/// SigLIP; pooled patches, their norm, and one matrix (Gemma 3).
void read_gemma_tower(ConfigReader& reader, const Node& document, ModelConfig& config, ConfigReader& outer) {
  TowerReader tower(reader, document, "vision_config",
                    R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
                        "num_attention_heads": 12, "num_channels": 3})",
                    config);
  const ImageTower sizes = plain_tower(tower);
  tower.require_flag("vision_use_head", false);
  tower.judge_rest();
  const std::int64_t pooled = outer.integer({"mm_tokens_per_image"}, 256);
  if (pooled < 1 || sizes.patches % pooled != 0)
    outer.fail(outer.find({"mm_tokens_per_image"}),
               fmt::format("'mm_tokens_per_image' must divide the {} patches", sizes.patches));
  reader.front() = {
      tower_network(sizes),
      single_block("pooled", fmt::format(R"("hidden": {}, "sequence": {})", sizes.hidden, pooled),
                   R"([{"output_norm": {"norms": "none", "residual": false}}])"),
      single_block("projector", fmt::format(R"("sequence": {})", pooled),
                   fmt::format(R"([{{"linear": {{"inputs": {}, "bias": false, "norms": "none", "residual": false}}}}])",
                               sizes.hidden))};
  tell_image(config, sizes.patches);
}

/// A linear layer without bias, alone on its stream.
std::string adapter_layer(std::int64_t inputs, bool activate) {
  return fmt::format(
      R"({{"linear": {{"inputs": {}, "bias": false, "activate": {}, "norms": "none", "residual": false}}}})", inputs,
      activate);
}

/// Patches are joined in squares (pixel shuffle), two layers with GELU each, and one matrix behind them (Llama 4).
void read_llama4_tower(ConfigReader& reader, const Node& document, ModelConfig& config) {
  TowerReader tower(reader, document, "vision_config",
                    R"({"hidden_size": 768, "num_hidden_layers": 34, "num_attention_heads": 16, "num_channels": 3,
                        "intermediate_size": 5632, "vision_output_dim": 7680, "image_size": 448, "patch_size": 14,
                        "pixel_shuffle_ratio": 0.5, "projector_input_dim": 4096, "projector_output_dim": 4096,
                        "multi_modal_projector_bias": false})",
                    config);
  ImageTower sizes = plain_tower(tower);
  sizes.extra_tokens = 1, sizes.patch_bias = false, sizes.norm_at_entrance = true;
  const double ratio = tower.keys().real({"pixel_shuffle_ratio"}, 0.5);
  const auto joined = ratio > 0.01 ? static_cast<std::int64_t>(1 / (ratio * ratio) + 0.5) : 0;
  if (joined < 1 || sizes.hidden * joined != sizes.ffn_hidden || sizes.patches % joined != 0)
    tower.fail("'pixel_shuffle_ratio' must give as many numbers as 'intermediate_size' has, the adapter's inputs");
  const std::int64_t width = tower.size({"projector_input_dim"}), out = tower.size({"projector_output_dim"});
  if (width != out || tower.size({"vision_output_dim"}) != out)
    tower.fail("'projector_input_dim', 'projector_output_dim' and 'vision_output_dim' must be equal");
  tower.require_flag("multi_modal_projector_bias", false);
  tower.require_text("vision_feature_select_strategy", "default");
  tower.keys().find({"projector_dropout", "vision_feature_layer"});
  tower.judge_rest();
  const std::int64_t tokens = sizes.patches / joined;
  reader.front() = {
      tower_network(sizes),
      single_block("adapter", fmt::format(R"("hidden": {}, "sequence": {}, "activation": "gelu")", width, tokens),
                   "[" + adapter_layer(sizes.ffn_hidden, true) + ", " + adapter_layer(width, true) + "]"),
      single_block("projector", fmt::format(R"("sequence": {})", tokens), "[" + adapter_layer(out, false) + "]")};
  tell_image(config, sizes.patches);
}

/// MoonViT: as many patches as its table of positions has rows; patches of squares are joined behind a norm, and go
/// through a feed-forward network (Kimi K2.5; vLLM, vllm/model_executor/models/kimi_k25_vit.py).
void read_kimi_tower(ConfigReader& reader, const Node& document, ModelConfig& config) {
  TowerReader tower(reader, document, "vision_config", R"({"num_channels": 3})", config);
  ImageTower sizes;
  sizes.hidden = tower.size({"vt_hidden_size"});
  sizes.heads = tower.size({"vt_num_attention_heads"});
  sizes.layers = tower.size({"vt_num_hidden_layers"}, 1'000);
  sizes.ffn_hidden = tower.size({"vt_intermediate_size"});
  sizes.patches = tower.size({"init_pos_emb_height"}, 1'000) * tower.size({"init_pos_emb_width"}, 1'000);
  const std::int64_t patch = tower.side({"patch_size"}, 1'000), merge = tower.side({"merge_kernel_size"}, 16);
  sizes.inputs = tower.size({"num_channels"}, 16) * patch * patch;
  sizes.norms_at_end = 2;  // of the tower and of the projector
  check_head_width(tower.keys(), {tower.keys().find({"vt_hidden_size"}), sizes.hidden},
                   {tower.keys().find({"vt_num_attention_heads"}), sizes.heads});
  if (tower.size({"mm_hidden_size"}) != sizes.hidden || tower.size({"text_hidden_size"}) != reader.setting("hidden"))
    tower.fail("'mm_hidden_size' must be 'vt_hidden_size', and 'text_hidden_size' that of the language model");
  if (sizes.patches % (merge * merge) != 0) tower.fail("'merge_kernel_size' must divide the table of positions");
  tower.require_text("mm_projector_type", "patchmerger");
  tower.require_text("merge_type", "sd2_tpool");
  tower.require_text("pos_emb_type", "divided_fixed");
  tower.keys().find({"init_pos_emb_time", "projector_hidden_act", "projector_ln_eps", "video_attn_type"});
  tower.judge_rest();
  const std::int64_t merged = sizes.hidden * merge * merge;
  reader.front() = {
      tower_network(sizes),
      single_block(
          "projector",
          fmt::format(R"("sequence": {}, "activation": "gelu", "biases": true)", sizes.patches / merge / merge),
          fmt::format(R"([{{"mlp": {{"inputs": {0}, "ffn_hidden": {0}, "norms": "none", "residual": false}}}}])",
                      merged))};
  tell_image(config, sizes.patches);
}

ImageTower read_clip_tower(ConfigReader& reader, const Node& document, ModelConfig& config) {
  TowerReader tower(reader, document, "vision_config",
                    R"({"hidden_size": 768, "intermediate_size": 3072, "projection_dim": 512, "num_hidden_layers": 12,
                        "num_attention_heads": 12, "num_channels": 3, "image_size": 224, "patch_size": 32})",
                    config);
  ImageTower sizes = plain_tower(tower);
  sizes.extra_tokens = 1, sizes.patch_bias = false, sizes.norm_at_entrance = true;
  tower.require_text("model_type", "clip_vision_model");
  tower.keys().find({"projection_dim", "dropout", "vocab_size", "tie_word_embeddings"});
  tower.judge_rest();
  return sizes;
}

/// Judges which layer's features LLaVA reads: all layers of the tower run, whichever it is.
void judge_feature_layer(ConfigReader& reader, ConfigReader& outer, std::int64_t layers, ModelConfig& config) {
  constexpr std::int64_t kUsual = -2;  // the last layer but one
  const FoundKey found = outer.find({"vision_feature_layer"});
  if (!found.is_set()) return;
  if (found.value->kind == Node::Kind::sequence)
    return reader.refuse(found, "'vision_feature_layer' is a list: features of several layers are not modelled");
  core::OptionInfo info;  // the embedding and all layers, counted from either end
  info.minimum = static_cast<double>(-layers - 1), info.maximum = static_cast<double>(layers);
  const auto layer = std::get<std::int64_t>(import::read_value(*found.value, info, found.key));
  const std::int64_t behind = layer < 0 ? -1 - layer : layers - layer;
  if (layer != kUsual && behind > 0)
    config.left_out.push_back(
        {found.key,
         fmt::format("that the last {} of the tower's layers have no gradients: they run as the others do", behind)});
}

/// Returns whether LLaVA reads all tokens of the tower, the class's among them.
bool reads_all_features(ConfigReader& outer) {
  const std::string strategy = outer.text({"vision_feature_select_strategy"}, "default");
  if (strategy != "default" && strategy != "full")
    outer.fail(
        outer.find({"vision_feature_select_strategy"}),
        fmt::format("'vision_feature_select_strategy' must be default or full, not '{}'", strategy.substr(0, 40)));
  return strategy == "full";
}

/// CLIP's tower, of which the last layer and the norm behind it stay without effect, and a projector of two layers.
void read_llava_tower(ConfigReader& reader, const Node& document, ModelConfig& config, ConfigReader& outer) {
  const ImageTower sizes = read_clip_tower(reader, document, config);
  const bool biased = outer.flag({"multimodal_projector_bias"}, true);
  const bool whole = reads_all_features(outer);
  judge_feature_layer(reader, outer, sizes.layers, config);
  outer.find({"projector_hidden_act", "image_seq_length", "vocab_size", "tie_word_embeddings"});
  reader.front() = {
      tower_network(sizes),
      single_block(
          "projector",
          fmt::format(R"("sequence": {}, "activation": "gelu", "biases": {})", sizes.patches + (whole ? 1 : 0), biased),
          fmt::format(R"([{{"mlp": {{"inputs": {}, "ffn_hidden": {}, "norms": "none", "residual": false}}}}])",
                      sizes.hidden, reader.setting("hidden")))};
  tell_image(config, sizes.patches);
}

/// Both towers of CLIP. Each ends with a projection of one token of each sample, which the loss compares.
void read_clip(ConfigReader& reader, const Node& document, ModelConfig& config, ConfigReader& outer) {
  const ImageTower sizes = read_clip_tower(reader, document, config);
  const std::int64_t width = outer.integer({"projection_dim"}, 512);
  if (width < 1 || width > 1'000'000)
    outer.fail(outer.find({"projection_dim"}), "'projection_dim' must be from 1 to 1000000");
  outer.find({"logit_scale_init_value", "text_config_dict", "vision_config_dict", "initializer_factor"});
  reader.front() = {
      tower_network(sizes, fmt::format(R"({{"contrastive_head": {{"width": {}, "loss": false}}}})", width))};
  reader.layers().end_with(R"({"output_norm": {"norms": "none", "residual": false}})");
  reader.layers().end_with(fmt::format(R"({{"contrastive_head": {{"width": {}}}}})", width));
}

/// Tells or refuses keys of the document around the language model.
void judge_document(ConfigReader& reader, ConfigReader& outer, const Node& document, const std::string& type) {
  if (const Node* audio = document.find("audio_config"); audio != nullptr && !audio->entries.empty())
    reader.refuse(audio->line, "'audio_config': an audio tower is not modelled");
  outer.find({"model_type", "tie_word_embeddings"});
  judge_remaining_keys(outer, document, "a " + type);
  for (const Refusal& one : outer.refusals()) reader.refuse(one.line, one.text);
}

bool is_qwen(const std::string& type) {
  return type.starts_with("qwen3_vl") || type.starts_with("qwen3_5");
}

}  // namespace

bool has_text_member(const std::string& type) {
  return is_qwen(type) || type == "clip" || type == "llava" || type == "gemma3" || type == "llama4" ||
         type == "kimi_k25";
}

bool read_tower(ConfigReader& reader, const Node& document, ModelConfig& config) {
  const Node *vision = document.find("vision_config"), *found = document.find("model_type");
  if (vision == nullptr || vision->kind != Node::Kind::mapping) return false;
  if (found == nullptr)
    vision->fail(fmt::format("'model_type' of the document is missing: whose tower 'vision_config' is{}",
                             document.find("text_config") == nullptr
                                 ? ""
                                 : fmt::format("; the language model alone is {}#text_config", reader.file())));
  const std::string& type = found->text;
  ConfigReader outer(document, document, "", config);
  if (type == "clip" && config.family == "clip_text_model")
    read_clip(reader, document, config, outer);
  else if (type == "llava" && reader.setting("hidden") > 0)
    read_llava_tower(reader, document, config, outer);
  else if (type == "gemma3" && config.family == "gemma3_text")
    read_gemma_tower(reader, document, config, outer);
  else if (type == "llama4" && config.family == "llama4_text")
    read_llama4_tower(reader, document, config);
  else if (type == "kimi_k25")
    read_kimi_tower(reader, document, config);
  else if (is_qwen(type))
    read_qwen_tower(reader, document, config);
  else
    return false;
  outer.find({"use_unified_vision_chunk", "video_placeholder"});
  judge_document(reader, outer, document, type);
  add_plain_layers(reader);
  return true;
}

}  // namespace manyworlds::experiments::models
