#include "experiments/decoders/decoder_parts.hpp"

#include <algorithm>

#include "experiments/model_keys/activations.hpp"
#include "experiments/model_keys/head_widths.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

/// Sets the number of dense layers before those with experts; other places of dense layers are refused.
void set_dense_layers(ConfigReader& reader, const FoundKey& from, const std::vector<bool>& dense) {
  const auto first_routed = std::find(dense.begin(), dense.end(), false);
  const bool is_prefix = std::find(first_routed, dense.end(), true) == dense.end();
  if (!is_prefix) {
    std::vector<std::size_t> at;
    for (std::size_t layer = 0; layer < dense.size(); ++layer)
      if (dense[layer]) at.push_back(layer);
    reader.refuse(from, fmt::format("'{}' has feed-forward networks without experts in {}: such layers are modelled "
                                    "only before all those with experts",
                                    from.key, layer_ranges(at)));
    return;
  }
  if (first_routed != dense.begin())
    reader.set("dense_layers", static_cast<std::int64_t>(first_routed - dense.begin()), from.key);
}

std::vector<bool> all_layers(const ConfigReader& reader, bool value) {
  return std::vector<bool>(static_cast<std::size_t>(reader.setting("layers")), value);
}

/// Reads a list of "dense" and "sparse", or of 0 and 1, for each layer.
void read_dense_list(ConfigReader& reader, const FoundKey& list) {
  std::vector<bool> dense;
  for (const Node& item : reader.layer_list(list)) {
    const bool is_dense = item.text == "dense" || item.text == "0";
    if (!is_dense && item.text != "sparse" && item.text != "moe" && item.text != "1")
      reader.fail(list,
                  fmt::format("'{}' has {}; known are dense and sparse, or 0 and 1", list.key, import::describe(item)));
    dense.push_back(is_dense);
  }
  set_dense_layers(reader, list, dense);
}

/// Experts in each layer behind the first ones, or in each n-th layer.
void read_expert_step(ConfigReader& reader, Keys keys) {
  const FoundKey step = reader.find(keys);
  if (step.is_set() && step.value->kind == Node::Kind::sequence) return read_dense_list(reader, step);
  if (reader.integer(keys, 1) != 1)
    reader.refuse(step, fmt::format("'{}' is {}: experts in only one of so many layers are not modelled", step.key,
                                    step.value->text));
}

void check_experts(ConfigReader& reader, Keys experts, Keys per_token) {
  const FoundKey all = reader.find(experts), chosen = reader.find(per_token);
  const std::int64_t most = reader.setting("experts");
  if (most > 0 && reader.setting("experts_per_token") > most)
    reader.fail(chosen, fmt::format("'{}' is {}, more than '{}', {}", chosen.key, chosen.value->text, all.key, most));
}

void read_layer_types(ConfigReader& reader, const FoundKey& list) {
  std::vector<std::size_t> windowed;
  const std::vector<Node>& types = reader.layer_list(list);
  for (std::size_t layer = 0; layer < types.size(); ++layer)
    if (types[layer].text == "sliding_attention") windowed.push_back(layer);
  const std::int64_t every = period_of(windowed, types.size());
  if (windowed.empty() || every == 0) return;  // the latter is refused in any family
  reader.take("window", {"sliding_window"});
  reader.set("window_every", every, list.key);
}

/// Returns what the name of an activation stands for. One that is not known, or that no network has, is refused.
Function require_function(ConfigReader& reader, const FoundKey& found, const std::string& name) {
  const std::optional<Function> function = function_named(name);
  if (!is_of_networks(function))
    reader.refuse(found, fmt::format("'{}' is '{}': this activation is not {}", found.key, name.substr(0, 40),
                                     function ? "modelled" : "known; known are silu, gelu, relu, relu2 and xielu"));
  return function.value_or(Function::other);
}

/// Notes a function that is neither the usual one, which is counted in its place, nor refused.
void note_unusual(ConfigReader& reader, const FoundKey& found, const std::string& name, Function function,
                  Function usual) {
  if (function != usual && function != Function::other)
    reader.note(found.key,
                fmt::format("'{}' moves the same bytes as {}", name, usual == Function::silu ? "SiLU" : "GELU"));
}

}  // namespace

void read_decoder(ConfigReader& reader) {
  reader.take("layers", {"num_hidden_layers"});
  reader.take("hidden", {"hidden_size"});
  reader.take("heads", {"num_attention_heads"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  reader.set("norm", "rms_norm");
  reader.set("position", "rotary");
  reader.set("dropout", false);
  if (reader.real({"attention_dropout"}, 0) > 0)
    reader.note("attention_dropout", "attention kernels draw their masks anew and keep none");
}

void read_gpt2_sizes(ConfigReader& reader, const char* position, double dropout) {
  reader.take("layers", {"n_layer", "num_hidden_layers"});
  reader.take("hidden", {"n_embd", "hidden_size"});
  reader.take("heads", {"n_head", "num_attention_heads"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  reader.take_if_set("ffn_hidden", {"n_inner"});
  reader.set("kv_heads", reader.setting("heads"));
  reader.set("norm", "layer_norm");
  read_network_activation(reader, {"activation_function"}, "gelu_new");
  reader.set("position", position);
  reader.set("biases", true);
  reader.set("dropout", reader.real({"resid_pdrop"}, dropout) > 0, "resid_pdrop");
  reader.find({"embd_pdrop", "attn_pdrop"});
  check_head_width(reader, said_size(reader, "hidden", {"n_embd", "hidden_size"}),
                   said_size(reader, "heads", {"n_head", "num_attention_heads"}));
}

void read_grouped_heads(ConfigReader& reader) {
  if (!reader.take_if_set("kv_heads", {"num_key_value_heads"})) reader.set("kv_heads", reader.setting("heads"));
  const SaidSize heads = said_size(reader, "heads", {"num_attention_heads"});
  check_key_heads(reader, said_size(reader, "kv_heads", {"num_key_value_heads"}), heads);
  if (reader.take_if_set("head_dim", {"head_dim"}) && reader.setting("head_dim") > 0) return;
  check_head_width(reader, said_size(reader, "hidden", {"hidden_size"}), heads,
                   "; 'head_dim' would say how wide a head is");
}

void read_latent_attention(ConfigReader& reader) {
  reader.set("attention", "latent");
  reader.take("kv_rank", {"kv_lora_rank"});
  reader.take_if_set("query_rank", {"q_lora_rank"});
  reader.take("head_dim", {"qk_nope_head_dim"});
  reader.take("rotary_dim", {"qk_rope_head_dim"});
  reader.take("value_dim", {"v_head_dim"});
  for (const Keys keys : {Keys{"kv_lora_rank"}, Keys{"qk_nope_head_dim"}, Keys{"v_head_dim"}})
    if (reader.integer(keys, 1) == 0)
      reader.fail(reader.find(keys), fmt::format("'{}' must be at least 1", reader.find(keys).key));
  const std::int64_t heads = reader.setting("heads");
  const FoundKey kv = reader.find({"num_key_value_heads"});
  if (reader.integer({"num_key_value_heads"}, heads) != heads && !kv.assumed)
    reader.fail(kv, fmt::format("'{}' must be 'num_attention_heads', {}, in latent attention", kv.key, heads));
  reader.find({"head_dim", "qk_head_dim"});  // they repeat what was read above
  if (reader.flag({"attention_bias"}, false))
    reader.leave_out({"attention_bias", "biases of the down-projections and of attention\'s output",
                      reader.setting("layers") * (reader.setting("query_rank") + reader.setting("kv_rank") +
                                                  reader.setting("rotary_dim") + reader.setting("hidden"))});
}

void read_feed_forward(ConfigReader& reader, FeedForward kind) {
  reader.take_if_set("ffn_hidden", {"intermediate_size"});
  const FoundKey found = reader.find({"hidden_activation", "hidden_act"});
  const std::string name = reader.text({"hidden_activation", "hidden_act"}, "silu");
  const Function function = require_function(reader, found, name);
  reader.set("activation", kind == FeedForward::gated ? "swiglu" : "gelu");
  note_unusual(reader, found, name, function, kind == FeedForward::gated ? Function::silu : Function::gelu);
}

void read_network_activation(ConfigReader& reader, Keys keys, const std::string& usual) {
  const FoundKey found = reader.find(keys);
  const std::string name = reader.text(keys, usual);
  const Function function = require_function(reader, found, name);
  const bool is_relu = function == Function::relu;
  reader.set("activation", is_relu ? "relu" : "gelu", found.value == nullptr ? std::string() : found.key);
  if (!is_relu) note_unusual(reader, found, name, function, Function::gelu);
}

void read_window(ConfigReader& reader) {
  const FoundKey types = reader.find({"layer_types"}), window = reader.find({"sliding_window"});
  const FoundKey first = reader.find({"max_window_layers"});
  const bool used = reader.flag({"use_sliding_window"}, true);
  if (types.is_set()) return read_layer_types(reader, types);
  if (!used || !window.is_set() || reader.integer({"sliding_window"}, 0) == 0) return;
  const std::int64_t full_layers = reader.integer({"max_window_layers"}, 0);
  if (full_layers >= reader.setting("layers")) return;
  if (full_layers > 0)
    return reader.refuse(first, fmt::format("'{}' is {}: windows only in the layers behind these are not modelled",
                                            first.key, full_layers));
  reader.take("window", {"sliding_window"});
}

void read_biases(ConfigReader& reader, const Biases& biases, const std::string& key) {
  const bool all = biases.queries_keys_values && biases.attention_output && biases.feed_forward;
  reader.set("biases", all, key);
  if (all || (!biases.queries_keys_values && !biases.attention_output && !biases.feed_forward)) return;
  const std::int64_t head =
      reader.setting("head_dim") > 0 ? reader.setting("head_dim") : reader.setting("hidden") / reader.setting("heads");
  if (biases.attention_output || biases.feed_forward)
    reader.carry("config." + (key.empty() ? std::string("bias") : key), {"true"});
  else
    reader.carry("add-qkv-bias");
  std::int64_t parameters = 0;
  if (biases.queries_keys_values) parameters += (reader.setting("heads") + 2 * reader.setting("kv_heads")) * head;
  if (biases.attention_output) parameters += reader.setting("hidden");
  if (biases.feed_forward) parameters += 2 * reader.setting("ffn_hidden") + reader.setting("hidden");
  reader.leave_out({key,
                    biases.feed_forward       ? "biases of some projections"
                    : biases.attention_output ? "biases of attention's projections"
                                              : "biases of queries, keys and values",
                    reader.setting("layers") * parameters});
}

void read_mixtral_experts(ConfigReader& reader) {
  const Keys experts{"num_local_experts", "num_experts"}, chosen{"num_experts_per_tok", "experts_per_token"};
  reader.take("experts", experts);
  reader.take("experts_per_token", chosen);
  check_experts(reader, experts, chosen);
}

void read_qwen_experts(ConfigReader& reader) {
  const Keys experts{"num_experts", "num_local_experts"}, chosen{"num_experts_per_tok"};
  reader.take("experts", experts);
  reader.take("experts_per_token", chosen);
  reader.take("expert_ffn_hidden", {"moe_intermediate_size"});
  check_experts(reader, experts, chosen);
  read_expert_step(reader, {"decoder_sparse_step"});
  const FoundKey list = reader.find({"mlp_only_layers"});
  if (!list.is_set()) return;
  if (list.value->kind != Node::Kind::sequence) reader.fail(list, "'mlp_only_layers' must be a list of layers");
  std::vector<bool> dense = all_layers(reader, false);
  for (const Node& item : list.value->items) {
    core::OptionInfo info;
    info.minimum = 0;
    info.maximum = static_cast<double>(dense.size()) - 1;
    dense[static_cast<std::size_t>(std::get<std::int64_t>(import::read_value(item, info, list.key)))] = true;
  }
  set_dense_layers(reader, list, dense);
}

void read_deepseek_experts(ConfigReader& reader) {
  const Keys experts{"n_routed_experts", "num_local_experts", "num_experts"}, chosen{"num_experts_per_tok"};
  if (reader.integer(experts, 0) == 0) {  // a dense model, where these mean nothing
    reader.find({"num_experts_per_tok", "moe_intermediate_size", "n_shared_experts", "first_k_dense_replace"});
    return;
  }
  reader.take("experts", experts);
  reader.take("experts_per_token", chosen);
  reader.take("expert_ffn_hidden", {"moe_intermediate_size"});
  check_experts(reader, experts, chosen);
  const std::int64_t shared = reader.integer({"n_shared_experts"}, 0);
  if (shared > 0) reader.set("shared_ffn_hidden", shared * reader.setting("expert_ffn_hidden"), "n_shared_experts");
  if (const FoundKey types = reader.find({"mlp_layer_types"}); types.is_set() && !types.assumed)
    return read_dense_list(reader, types);
  if (reader.integer({"first_k_dense_replace"}, 0) > 0) reader.take("dense_layers", {"first_k_dense_replace"});
  read_expert_step(reader, {"moe_layer_freq"});
}

std::int64_t window_of(ConfigReader& reader, Keys keys, std::int64_t otherwise) {
  const FoundKey found = reader.find(keys);
  const std::int64_t tokens = reader.integer(keys, otherwise);
  if (found.is_set() && tokens == 0)
    reader.fail(found, fmt::format("'{}' is 0: a window has 1 token or more; null is no window", found.key));
  return tokens;
}

void add_alike(ConfigReader& reader, const std::string& parts) {
  for (std::int64_t layer = 0; layer < reader.setting("layers"); ++layer) reader.layers().add("layer", parts);
}

void leave_out_next_tokens(ConfigReader& reader, bool like_last_layer) {
  const FoundKey from = reader.find({"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"});
  const std::int64_t layers =
      reader.integer({"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"}, 0);
  if (layers == 0 || !reader.flag({"use_mtp"}, true)) return;
  const std::string option = like_last_layer ? fmt::format(", which model.mtp_layers={} adds", layers) : "";
  reader.leave_out({from.key,
                    fmt::format("{} {} for multi-token prediction{}", layers, layers == 1 ? "layer" : "layers", option),
                    0, layers});
}

void refuse_flag(ConfigReader& reader, std::string_view key, std::string_view what) {
  if (reader.flag({key}, false)) reader.refuse(reader.find({key}), fmt::format("'{}' is true: {}", key, what));
}

void note_inside_kernels(ConfigReader& reader, Keys keys) {
  for (const std::string_view key : keys)
    if (reader.find({key}).is_set()) reader.note(std::string(key), "a factor inside of kernels");
}

void note_score_biases(ConfigReader& reader, const std::string& key) {
  reader.note(key, "biases of the scores in place of positions (ALiBi), inside of the attention kernel");
}

std::vector<bool> layers_named(ConfigReader& reader, const FoundKey& list, std::string_view kind,
                               std::string_view other) {
  std::vector<bool> result;
  for (const Node& item : reader.layer_list(list)) {
    if (item.text != kind && item.text != other)
      reader.fail(list,
                  fmt::format("'{}' has '{}'; known are {} and {}", list.key, item.text.substr(0, 40), kind, other));
    result.push_back(item.text == kind);
  }
  return result;
}

void read_latent_decoder(ConfigReader& reader) {
  read_decoder(reader);
  read_latent_attention(reader);
  read_feed_forward(reader, FeedForward::gated);
  reader.set("biases", false);
  read_deepseek_experts(reader);
  leave_out_next_tokens(reader);
}

}  // namespace manyworlds::experiments::models
