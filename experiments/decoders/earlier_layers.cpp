// Families of 2021 to 2024 with biases of scores in place of positions (BLOOM, MPT, Baichuan 13B), with windows in
// every second layer (GPT-Neo), or with sizes in mappings of their own (MPT, DBRX). Defaults are those of the classes
// in transformers/models/*/configuration_*.py (Hugging Face) at version 4.57.3; Baichuan has code of its own beside its
// weights.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/model_keys/head_widths.hpp"
#include "experiments/model_keys/key_kinds.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

constexpr std::int64_t kUsualSequence = 4'096;  // tokens of a sample where the file says no less
constexpr double kMaxSize = 1e9;

void use_layer_norm(ConfigReader& reader, bool shifted) {
  std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "norm"; });
  reader.set("norm", shifted ? "layer_norm" : "rms_norm");
  if (!shifted) reader.note("norms", "norms of mean and variance without a shift, which move the bytes of RMS norms");
}

/// Keys of a mapping inside of the configuration, as `attn_config`.
class Member {
 public:
  Member(ConfigReader& reader, const std::string& key) : reader_(reader), found_(reader.find({key})) {
    if (found_.is_set() && found_.value->kind != Node::Kind::mapping)
      reader.fail(found_, fmt::format("'{}' must be an object, not {}", key, import::describe(*found_.value)));
  }

  const Node* find(const std::string& key) {
    known_.insert(key);
    const Node* found = found_.is_set() ? found_.value->find(key) : nullptr;
    return found == nullptr || found->kind == Node::Kind::null ? nullptr : found;
  }
  /// Returns where the key stands, the mapping's line if it does not.
  FoundKey found(const std::string& key) {
    const Node* value = find(key);
    return {value, key, value == nullptr ? found_.line : value->line, found_.assumed};
  }
  std::int64_t integer(const std::string& key, std::int64_t otherwise) {
    return value(key, core::OptionInfo::Kind::integer, otherwise);
  }
  bool flag(const std::string& key, bool otherwise) { return value(key, core::OptionInfo::Kind::boolean, otherwise); }
  std::string text(const std::string& key, const std::string& otherwise) {
    const Node* found = find(key);
    return found == nullptr ? otherwise : import::read_line(*found, name(key));
  }
  void refuse(const std::string& key, const std::string& what) {
    const Node* found = find(key);
    reader_.refuse(found == nullptr ? found_.line : found->line, what);
  }
  /// Refuses what is of another kind than its key has, and what is not known, unless it is null, false, 0 or empty:
  /// that is told.
  void refuse_others(const std::set<std::string>& without_effect) {
    if (!found_.is_set()) return;
    for (const import::Entry& entry : found_.value->entries) {
      if (const std::string wrong = wrong_kind(entry.key, entry.value); !wrong.empty())
        reader_.refuse(entry.line, fmt::format("'{}': {}", found_.key, wrong));
      const bool is_empty = entry.value.kind == Node::Kind::scalar
                                ? entry.value.text.empty() || entry.value.text == "false" || entry.value.text == "0" ||
                                      entry.value.text == "0.0"
                                : entry.value.items.empty() && entry.value.entries.empty();
      const bool is_unknown =
          !known_.contains(entry.key) && !without_effect.contains(entry.key) && !is_plain_key(entry.key);
      if (is_unknown && is_empty)
        reader_.note(fmt::format("{}.{}", found_.key, entry.key), "not known, and not read");
      else if (is_unknown)
        reader_.refuse(entry.line,
                       fmt::format("'{}' of '{}' is not known of a {}; take it out if it does not change its "
                                   "layers",
                                   entry.key.substr(0, 60), found_.key, reader_.config().family));
    }
  }

 private:
  std::string name(const std::string& key) const { return found_.key + "." + key; }
  template <class Value>
  Value value(const std::string& key, core::OptionInfo::Kind kind, Value otherwise) {
    const Node* found = find(key);
    if (found == nullptr) return otherwise;
    core::OptionInfo info;
    info.kind = kind;
    info.minimum = 0;
    info.maximum = kMaxSize;
    return std::get<Value>(import::read_value(*found, info, name(key)));
  }

  ConfigReader& reader_;
  FoundKey found_;
  std::set<std::string> known_;
};

/// A norm stands behind the table of tokens.
void read_bloom(ConfigReader& reader) {
  reader.take("layers", {"n_layer", "num_hidden_layers"});
  reader.take("hidden", {"n_embed", "hidden_size"});
  reader.take("heads", {"n_head", "num_attention_heads"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  reader.take_if_set("ffn_hidden", {"n_inner"});
  check_head_width(reader, said_size(reader, "hidden", {"n_embed", "hidden_size"}),
                   said_size(reader, "heads", {"n_head", "num_attention_heads"}));
  reader.set("kv_heads", reader.setting("heads"));
  reader.set("norm", "layer_norm");
  reader.set("activation", "gelu");
  reader.set("position", "none");
  reader.set("biases", true);
  reader.set("dropout", reader.real({"hidden_dropout"}, 0) > 0, "hidden_dropout");
  note_score_biases(reader, "model_type");
  refuse_flag(reader, "apply_residual_connection_post_layernorm", "sums with what norms return are not modelled");
  reader.find({"attention_dropout", "attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion",
               "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "slow_but_exact", "hidden_size"});
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer)
    reader.layers().add("layer", R"(["attention", "mlp"])");
  reader.layers().begin_with(R"({"output_norm": {"norms": "none", "residual": false}})");
}

/// Both sizes stand at 4,096 and 5,120 in all that is published, of which the smaller model has rotary positions (vLLM,
/// model_executor/models/baichuan.py).
void read_baichuan(ConfigReader& reader) {
  constexpr std::int64_t kRotatedWidth = 4'096;
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  reader.set("biases", false);
  if (reader.setting("hidden") != kRotatedWidth) {
    std::erase_if(reader.values(), [](const ConfigValue& value) { return value.option == "position"; });
    reader.set("position", "none", "hidden_size");
    note_score_biases(reader, "hidden_size");
  }
  if (reader.real({"z_loss_weight"}, 0) > 0) reader.note("z_loss_weight", "a term of the loss's kernel");
}

/// Sizes in the words of MPT and DBRX.
void read_databricks_sizes(ConfigReader& reader) {
  reader.take("layers", {"n_layers"});
  reader.take("hidden", {"d_model"});
  reader.take("heads", {"n_heads"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  check_head_width(reader, said_size(reader, "hidden", {"d_model"}), said_size(reader, "heads", {"n_heads"}));
}

/// The network is `expansion_ratio` times as wide as the stream, 4 in all that is published.
void read_mpt(ConfigReader& reader) {
  read_databricks_sizes(reader);
  const std::int64_t ratio = reader.integer({"expansion_ratio"}, 4);
  if (ratio < 1 || ratio > 1'000) reader.fail(reader.find({"expansion_ratio"}), "'expansion_ratio' must be 1 to 1000");
  reader.set("ffn_hidden", ratio * reader.setting("hidden"), "expansion_ratio");
  Member attention(reader, "attn_config");
  const std::string type = attention.text("attn_type", "multihead_attention");
  const SaidSize heads = said_size(reader, "heads", {"n_heads"});
  const std::int64_t kv_heads = type == "multiquery_attention" ? 1 : attention.integer("kv_n_heads", heads.value);
  check_key_heads(reader, {attention.found("kv_n_heads"), kv_heads}, heads);
  reader.set("kv_heads", kv_heads, "attn_config");
  const bool slopes = attention.flag("alibi", true);
  reader.set("position", slopes ? "none" : reader.flag({"learned_pos_emb"}, true) ? "learned" : "none", "attn_config");
  if (slopes) note_score_biases(reader, "attn_config");
  if (attention.flag("qk_ln", false))
    attention.refuse("qk_ln", "'qk_ln' is true: one norm over all heads of queries and keys is not modelled here");
  attention.refuse_others({"alibi_bias_max", "attn_impl", "attn_pdrop", "attn_uses_sequence_id", "clip_qkv",
                           "model_type", "prefix_lm", "softmax_scale", "transformers_version"});
  const bool bare = reader.flag({"no_bias"}, true);
  reader.set("biases", !bare, "no_bias");
  use_layer_norm(reader, !bare);
  reader.set("activation", "gelu");
  reader.set("dropout", reader.real({"resid_pdrop"}, 0) > 0, "resid_pdrop");
  const std::string norm = reader.text({"norm_type"}, "low_precision_layernorm");
  if (norm != "low_precision_layernorm" && norm != "layernorm")
    reader.refuse(reader.find({"norm_type"}),
                  fmt::format("'norm_type' is '{}': this norm is not modelled", norm.substr(0, 40)));
  reader.find(
      {"emb_pdrop", "init_config", "init_device", "learned_pos_emb", "embedding_fraction", "verbose", "logit_scale"});
  reader.set_sequence(std::clamp<std::int64_t>(reader.integer({"max_seq_len"}, kUsualSequence), 1, kUsualSequence));
}

void read_dbrx(ConfigReader& reader) {
  read_databricks_sizes(reader);
  use_layer_norm(reader, false);
  reader.set("position", "rotary");
  reader.set("activation", "swiglu");
  reader.set("biases", false);
  reader.set("dropout", reader.real({"resid_pdrop"}, 0) > 0, "resid_pdrop");
  Member attention(reader, "attn_config"), experts(reader, "ffn_config");
  const std::int64_t kv_heads = attention.integer("kv_n_heads", 1);
  check_key_heads(reader, {attention.found("kv_n_heads"), kv_heads}, said_size(reader, "heads", {"n_heads"}));
  reader.set("kv_heads", kv_heads, "attn_config");
  attention.refuse_others({"attn_pdrop", "clip_qkv", "model_type", "rope_theta", "transformers_version"});
  const std::int64_t count = experts.integer("moe_num_experts", 4), chosen = experts.integer("moe_top_k", 1);
  if (count < 1 || chosen < 1 || chosen > count)
    reader.fail(reader.find({"ffn_config"}), "'moe_top_k' of 'ffn_config' must be from 1 to 'moe_num_experts'");
  reader.set("experts", count, "ffn_config");
  reader.set("experts_per_token", chosen, "ffn_config");
  reader.set("expert_ffn_hidden", std::max<std::int64_t>(experts.integer("ffn_hidden_size", 3'584), 1), "ffn_config");
  if (const Node* act = experts.find("ffn_act_fn"))
    if (const Node* act_name = act->find("name"); act_name != nullptr && act_name->text != "silu")
      experts.refuse("ffn_act_fn", "'ffn_act_fn' of 'ffn_config' must be silu, the activation of the family");
  experts.refuse_others({"model_type", "moe_jitter_eps", "moe_loss_weight", "moe_normalize_expert_weights",
                         "transformers_version", "uniform_expert_assignment"});
  reader.find({"emb_pdrop"});
  reader.set_sequence(std::clamp<std::int64_t>(reader.integer({"max_seq_len"}, kUsualSequence), 1, kUsualSequence));
}

/// Returns the names of layers' attention that pairs of a list of names and how often it recurs give; none if it is no
/// such list.
std::vector<std::string> expanded_types(const Node& types, std::size_t most) {
  std::vector<std::string> names;
  for (const Node& pair : types.items) {
    if (pair.kind != Node::Kind::sequence || pair.items.size() != 2 || pair.items[0].kind != Node::Kind::sequence)
      return {};
    const std::string& times = pair.items[1].text;
    if (times.empty() || times.size() > 5 || times.find_first_not_of("0123456789") != std::string::npos) return {};
    for (std::int64_t i = std::stoll(times); i > 0 && names.size() <= most; --i)
      for (const Node& name : pair.items[0].items) names.push_back(name.text);
  }
  return names;
}

/// Returns whether each layer has a window.
std::vector<bool> local_layers(ConfigReader& reader) {
  const auto layers = static_cast<std::size_t>(reader.setting("layers"));
  const FoundKey listed = reader.find({"attention_layers"}), types = reader.find({"attention_types"});
  if (listed.is_set()) return layers_named(reader, listed, "local", "global");
  std::vector<bool> local;
  const std::vector<std::string> names =
      types.is_set() ? expanded_types(*types.value, layers) : std::vector<std::string>(layers, "global");
  for (const std::string& name : names) {
    if (name != "local" && name != "global")
      reader.fail(types, fmt::format("'attention_types' has '{}'; known are global and local", name.substr(0, 40)));
    local.push_back(name == "local");
  }
  if (local.size() != layers)
    reader.fail(types,
                fmt::format("'attention_types' must be lists of names with how often they recur, for {} layers in all",
                            layers));
  return local;
}

/// Queries, keys and values have no biases; the output of attention, whose biases are left out, and the network have.
void read_gpt_neo(ConfigReader& reader) {
  reader.take("layers", {"num_layers", "num_hidden_layers"});
  reader.take("hidden", {"hidden_size"});
  reader.take("heads", {"num_heads", "num_attention_heads"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  reader.take_if_set("ffn_hidden", {"intermediate_size"});
  check_head_width(reader, said_size(reader, "hidden", {"hidden_size"}),
                   said_size(reader, "heads", {"num_heads", "num_attention_heads"}));
  reader.set("kv_heads", reader.setting("heads"));
  reader.set("norm", "layer_norm");
  read_network_activation(reader, {"activation_function"}, "gelu_new");
  reader.set("position", "learned");
  reader.set("biases", true);
  reader.set("dropout", reader.real({"resid_dropout"}, 0) > 0, "resid_dropout");
  reader.find({"embed_dropout", "attention_dropout", "classifier_dropout"});
  const std::int64_t window = window_of(reader, {"window_size"}, 256);
  for (const bool local : local_layers(reader))
    reader.layers().add(local ? "windowed" : "full",
                        fmt::format(R"([{{"attention": {{"biases": false{}}}}}, "mlp"])",
                                    local ? fmt::format(R"(, "window": {})", window) : ""));
  reader.leave_out(
      {"hidden_size", "biases of attention's output", reader.setting("layers") * reader.setting("hidden")});
}

}  // namespace

std::vector<Family> earlier_families() {
  return {
      {"baichuan", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_baichuan},
      {"bloom", "BloomConfig",
       R"({"vocab_size": 250880, "hidden_size": 64, "n_layer": 2, "n_head": 8, "tie_word_embeddings": true,
           "hidden_dropout": 0.0, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02})",
       read_bloom},
      {"dbrx", "DbrxConfig",
       R"({"vocab_size": 32000, "d_model": 2048, "n_heads": 16, "n_layers": 24, "tie_word_embeddings": false,
           "initializer_range": 0.02, "max_seq_len": 2048})",
       read_dbrx},
      {"gpt_neo", "GPTNeoConfig",
       R"({"vocab_size": 50257, "max_position_embeddings": 2048, "hidden_size": 2048, "num_layers": 24,
           "attention_types": [[["global", "local"], 12]], "num_heads": 16, "intermediate_size": null,
           "window_size": 256, "tie_word_embeddings": true, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02})",
       read_gpt_neo},
      {"mpt", "MptConfig",
       R"({"vocab_size": 50368, "d_model": 2048, "n_heads": 16, "n_layers": 24, "max_seq_len": 2048,
           "tie_word_embeddings": true, "no_bias": true, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02})",
       read_mpt},
  };
}

}  // namespace manyworlds::experiments::models
