#include "experiments/model_keys/known_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "experiments/model_keys/carried_keys.hpp"
#include "experiments/model_keys/key_kinds.hpp"
#include "experiments/model_keys/layer_kinds.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Entry;
using import::Node;

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

/// Returns whether a value is what a key of something absent has: null, false, 0, an empty list.
bool says_nothing(const Node& value) {
  if (value.kind == Node::Kind::sequence) return value.items.empty();
  if (value.kind == Node::Kind::mapping) return value.entries.empty();
  return value.kind == Node::Kind::null || value.text == "false" || value.text == "0" || value.text == "0.0" ||
         value.text.empty();
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

/// Refuses keys of the rotation whose values are of another kind, or that are nearly ones that are carried into jobs;
/// tells others that are not known. Each kind of layer may have a mapping of its own.
void judge_rotation(ConfigReader& reader, const std::string& name, const Node& rotation) {
  static const std::vector<std::string> known = rotation_keys();
  for (const Entry& entry : rotation.entries) {
    if (entry.value.kind == Node::Kind::mapping && !is_rotation_key(entry.key))
      judge_rotation(reader, name, entry.value);
    else if (const std::string wrong = wrong_kind_in_rotation(entry.key, entry.value); !wrong.empty())
      reader.refuse(entry.line, fmt::format("'{}': {}", name, wrong));
    else if (!is_rotation_key(entry.key) && !refuse_misspelt(reader, entry, known, fmt::format("'{}'", name)))
      reader.note(fmt::format("{}.{}", name, entry.key), "not known, and not read");
  }
}

/// Refuses a value that is nothing of the kind that its key has, unless something else was wrong with it.
void judge_kind(ConfigReader& reader, const Entry& entry) {
  const std::string wrong = wrong_kind(entry.key, entry.value);
  if (wrong.empty()) return;
  const auto is_of_key = [&](const Refusal& one) { return one.text.starts_with(fmt::format("'{}'", entry.key)); };
  if (std::none_of(reader.refusals().begin(), reader.refusals().end(), is_of_key)) reader.refuse(entry.line, wrong);
}

}  // namespace

void refuse_wrong_kinds(ConfigReader& reader, const Node& mapping) {
  for (const Entry& entry : mapping.entries) judge_kind(reader, entry);
}

bool refuse_misspelt_keys(ConfigReader& reader, const Node& config, const std::string& of) {
  const std::vector<std::string> asked(reader.read().begin(), reader.read().end());
  bool found = false;
  for (const Entry& entry : config.entries)
    if (!is_known_key(entry.key) && !reader.is_read(entry.key)) found |= refuse_misspelt(reader, entry, asked, of);
  return found;
}

void judge_remaining_keys(ConfigReader& reader, const Node& config, const std::string& of) {
  std::vector<std::string> counting = carried_keys();
  counting.insert(counting.end(), reader.read().begin(), reader.read().end());
  for (const Entry& entry : config.entries) {
    judge_kind(reader, entry);
    if (entry.key == "rope_scaling" || entry.key == "rope_parameters") judge_rotation(reader, entry.key, entry.value);
    const auto noted =
        std::find_if(std::begin(kNoted), std::end(kNoted), [&](const NotedKey& one) { return one.key == entry.key; });
    const bool is_noted = noted != std::end(kNoted);
    if (is_noted && !says_nothing(entry.value) && !is_usual(entry)) reader.note(entry.key, std::string(noted->why));
    if (is_of_layer_kinds(entry.key) || has_full_attention(entry)) continue;
    if (is_noted || reader.is_read(entry.key) || is_plain_key(entry.key)) continue;
    if (refuse_misspelt(reader, entry, counting, of)) continue;
    if (tells_of_layers(entry.key) && !says_nothing(entry.value))
      reader.refuse(
          entry.line,
          fmt::format("'{}' is not known of {}, and may change its layers; take it out if it does not", entry.key, of));
    else
      reader.note(entry.key, "not known, and not read");
  }
}

}  // namespace manyworlds::experiments::models
