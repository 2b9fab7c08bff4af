#include "experiments/model_keys/known_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "experiments/model_keys/carried_keys.hpp"
#include "experiments/model_keys/layer_kinds.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Entry;
using import::Node;

/// Names, generation, initial values, epsilons, tokens, losses: nothing that a layer's kernels depend on.
// clang-format off
constexpr std::string_view kPlain[] = {
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal", "_commit_hash",
    "_name_or_path", "_sliding_window_pattern", "architectures", "attention_in_fp32", "attn_implementation",
    "audio_config", "auto_map", "aux_loss_alpha", "bad_words_ids", "begin_suppress_tokens", "bos_token",
    "chunk_size_feed_forward", "cross_attention_hidden_size", "diversity_penalty", "do_sample", "dtype",
    "early_stopping", "encoder_no_repeat_ngram_size", "eos_token", "ep_size", "exponential_decay_length_penalty",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "id2label", "ignore_index",
    "initial_context_length", "initializer_factor", "initializer_range", "is_decoder", "keys_to_ignore_at_inference",
    "label2id", "layer_norm_eps", "layer_norm_epsilon", "length_penalty", "max_length", "max_position_embeddings",
    "model_max_length", "model_name", "model_type", "moe_router_dtype", "moe_router_scaling_factor",
    "mtp_loss_weight", "mtp_transformer_layers", "mtp_use_dedicated_embeddings", "n_ctx", "n_group", "n_positions",
    "norm_eps", "norm_epsilon", "norm_topk_prob", "num_beam_groups", "num_beams", "num_logits_to_keep",
    "num_return_sequences", "original_max_position_embeddings", "output_attentions", "output_hidden_states",
    "output_past", "output_router_logits", "output_scores", "prefix", "pretraining_tp", "problem_type",
    "pruned_heads", "remove_invalid_values", "reorder_and_upcast_attn", "repetition_penalty",
    "rescale_prenorm_residual", "residual_in_fp32", "return_dict", "return_dict_in_generate", "rms_norm_eps",
    "rope_interleave", "rope_ratio", "rope_theta", "rotary_emb_base", "routed_scaling_factor", "router_aux_loss_coef",
    "router_dtype", "router_jitter_noise", "router_z_loss_coef", "scale_attention_softmax",
    "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "scale_fmt", "scoring_func", "seq_aux", "seq_length",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "suppress_tokens", "task_specific_params", "temperature", "text_config", "tf_legacy_loss", "tie_encoder_decoder",
    "tokenizer_class", "top_k", "top_p", "topk_group", "topk_method", "torch_dtype", "torchscript",
    "transformers_version", "trust_remote_code", "typical_p", "unsloth_fixed", "unsloth_version", "use_bfloat16",
    "use_cache", "use_flash_attn", "use_mrope", "use_return_dict", "vision_config",
};
// clang-format on

struct NotedKey {
  std::string_view key, why;
};

constexpr NotedKey kNoted[] = {
    {"quantization_config", "how the checkpoint is stored for serving; what is trained in is strategy.stack.precision"},
    {"compression_config", "how the checkpoint is stored for serving; what is trained in is strategy.stack.precision"},
    {"rope_scaling", "other angles of the same rotation"},
    {"rope_parameters", "other angles of the same rotation"},
    {"rope_local_base_freq", "other angles of the same rotation"},
    {"partial_rotary_factor", "fewer values of a head are rotated; the kernel reads and writes it whole"},
    {"rotary_pct", "fewer values of a head are rotated; the kernel reads and writes it whole"},
    {"rotary_dim", "fewer values of a head are rotated; the kernel reads and writes it whole"},
    {"swiglu_limit", "a clamp inside of the activation's kernel"},
    {"swiglu_alpha", "a factor inside of the activation's kernel"},
    {"use_routing_bias", "one number for each expert, beside the router's weights"},
    {"use_moe_router_bias", "one number for each expert, beside the router's weights"},
    {"attn_logit_softcapping", "a function of the scores inside of the attention kernel"},
    {"final_logit_softcapping", "a function of the logits inside of the loss"},
    {"clip_qkv", "a clamp inside of the attention kernel"},
    {"hidden_dropout", "dropout behind attention and feed-forward network keeps small masks"},
    {"resid_pdrop", "dropout behind attention and feed-forward network keeps small masks"},
    {"embd_pdrop", "dropout behind the embedding keeps one small mask"},
    {"residual_dropout", "dropout behind attention and feed-forward network keeps small masks"},
    {"embedding_dropout", "dropout behind the embedding keeps one small mask"},
};

/// Words in keys that tell of layers.
constexpr std::string_view kOfLayers[] = {
    "attention", "attn",     "block",  "chunk",  "conv",   "dim",          "dense",  "expert",  "ffn",
    "gate",      "head",     "hidden", "hybrid", "index",  "intermediate", "latent", "layer",   "linear",
    "lora",      "mamba",    "mlp",    "moe",    "mtp",    "mup",          "norm",   "pattern", "rank",
    "recurrent", "residual", "shared", "skip",   "sparse", "ssm",          "state",  "width",   "window"};

template <class List>
bool contains(const List& list, std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

/// Returns whether a value is what a key of something absent has: null, false, 0, an empty list.
bool says_nothing(const Node& value) {
  if (value.kind == Node::Kind::sequence) return value.items.empty();
  if (value.kind == Node::Kind::mapping) return value.entries.empty();
  return value.kind == Node::Kind::null || value.text == "false" || value.text == "0" || value.text == "0.0" ||
         value.text.empty();
}

bool is_token(std::string_view key) {
  return key.ends_with("_token_id") || key.ends_with("_token_ids") || key.ends_with("_token_index") ||
         key.ends_with("_token") || key.ends_with("placeholder");
}

bool tells_of_layers(std::string_view key) {
  return std::any_of(std::begin(kOfLayers), std::end(kOfLayers),
                     [&](std::string_view word) { return key.find(word) != std::string_view::npos; });
}

/// Returns whether an entry says that all layers have full attention.
bool has_full_attention(const Entry& entry) {
  const auto is_full = [](const Node& item) { return item.text == "full_attention"; };
  return entry.key == "layer_types" && std::all_of(entry.value.items.begin(), entry.value.items.end(), is_full);
}

/// Rotations of the usual kind are not worth a note.
bool is_usual(const Entry& entry) {
  if (!entry.key.starts_with("rope_")) return false;
  const Node* type = entry.value.find("rope_type");
  return type == nullptr ? entry.value.kind != Node::Kind::mapping : type->text == "default";
}

/// Returns the key that an unknown one is a misspelling of: at most two edits, and one in four letters; empty if none
/// is that near.
std::string misspelt(const std::string& key, const std::vector<std::string>& known) {
  constexpr std::size_t kLettersOfAnEdit = 4, kMaxEdits = 2, kLongest = 64;
  if (key.size() > kLongest) return "";
  std::size_t allowed = std::min(kMaxEdits, key.size() / kLettersOfAnEdit);
  const std::string* nearest = nullptr;
  for (const std::string& one : known) {
    const std::size_t edits = edit_distance(key, one);
    if (edits > 0 && edits <= allowed && (nearest == nullptr || edits < allowed)) nearest = &one, allowed = edits;
  }
  return nearest == nullptr ? "" : *nearest;
}

/// Refuses an unknown key that is nearly one that counts. Returns whether it is.
bool refuse_misspelt(ConfigReader& reader, const Entry& entry, const std::vector<std::string>& known,
                     const std::string& of) {
  const std::string meant = entry.value.kind == Node::Kind::null ? "" : misspelt(entry.key, known);
  if (!meant.empty())
    reader.refuse(entry.line, fmt::format("'{}' is not known of {}; did you mean '{}'? Take it out if it is something "
                                          "else",
                                          entry.key, of, meant));
  return !meant.empty();
}

/// Refuses keys of the rotation that are nearly ones that are carried into jobs.
void judge_rotation(ConfigReader& reader, const Entry& rotation) {
  static const std::vector<std::string> known = rotation_keys();
  if (rotation.key != "rope_scaling" && rotation.key != "rope_parameters") return;
  for (const Entry& entry : rotation.value.entries)
    if (!contains(known, entry.key)) refuse_misspelt(reader, entry, known, fmt::format("'{}'", rotation.key));
}

}  // namespace

void judge_remaining_keys(ConfigReader& reader, const Node& config, const std::string& of) {
  std::vector<std::string> counting = carried_keys();
  counting.insert(counting.end(), reader.read().begin(), reader.read().end());
  for (const Entry& entry : config.entries) {
    judge_rotation(reader, entry);
    const auto noted =
        std::find_if(std::begin(kNoted), std::end(kNoted), [&](const NotedKey& one) { return one.key == entry.key; });
    const bool is_noted = noted != std::end(kNoted);
    if (is_noted && !says_nothing(entry.value) && !is_usual(entry)) reader.note(entry.key, std::string(noted->why));
    if (is_of_layer_kinds(entry.key) || has_full_attention(entry)) continue;
    if (is_noted || reader.is_read(entry.key) || contains(kPlain, entry.key) || is_token(entry.key)) continue;
    if (refuse_misspelt(reader, entry, counting, of) || says_nothing(entry.value)) continue;
    if (tells_of_layers(entry.key))
      reader.refuse(
          entry.line,
          fmt::format("'{}' is not known of {}, and may change its layers; take it out if it does not", entry.key, of));
    else
      reader.note(entry.key, "not known, and not read");
  }
}

}  // namespace manyworlds::experiments::models
