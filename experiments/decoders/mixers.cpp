// Families with state-space layers (Mamba-2, Nemotron-H, Bamba, Granite 4) and gated delta nets (Qwen3-Next, Qwen3.5).
// Defaults of Bamba are those of its class at commit 001f85b of transformers, of Granite 4 at 008f5c8.
#include <fmt/format.h>

#include "experiments/decoders/decoder_parts.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/model_keys/head_widths.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

/// Refuses a flag that is not as all published models of a family have it.
void require_flag(ConfigReader& reader, std::string_view key, bool expected) {
  if (reader.flag({key}, expected) != expected)
    reader.refuse(reader.find({key}), fmt::format("'{}' is {}: only {} is modelled", key, !expected, expected));
}

void note_factors(ConfigReader& reader, Keys keys) {
  for (const std::string_view key : keys)
    if (reader.find({key}).is_set()) reader.note(std::string(key), "inside of the kernels of state-space layers");
}

/// Returns a whole number of a key that file or defaults must have.
std::int64_t needed(ConfigReader& reader, Keys keys) {
  const FoundKey found = reader.find(keys);
  if (!found.is_set())
    throw core::InputError(
        fmt::format("'{}' is missing, and {} has no default for it", found.key, reader.config().family), reader.file());
  return reader.integer(keys, 0);
}

void read_width(ConfigReader& reader) {
  reader.take("hidden", {"hidden_size"});
  reader.take("vocabulary", {"vocab_size"});
  reader.take("tied_embeddings", {"tie_word_embeddings"});
  reader.set("norm", "rms_norm");
  reader.set("biases", false);
  reader.set("dropout", false);
}

std::string mamba_part(ConfigReader& reader, Keys heads, Keys head_dim, Keys state) {
  require_flag(reader, "use_conv_bias", true);
  require_flag(reader, "use_bias", false);
  return fmt::format(
      R"({{"mamba2": {{"heads": {}, "head_dim": {}, "state": {}, "groups": {}, "convolution": {}, "chunk": {}}}}})",
      needed(reader, heads), needed(reader, head_dim), needed(reader, state), needed(reader, {"n_groups"}),
      needed(reader, {"conv_kernel"}), needed(reader, {"chunk_size"}));
}

void check_expansion(ConfigReader& reader, Keys heads, Keys head_dim) {
  const std::int64_t inner = needed(reader, heads) * needed(reader, head_dim);
  const FoundKey expand = reader.find({"expand"});
  const std::int64_t wanted = reader.integer({"expand"}, 2) * reader.setting("hidden");
  if (expand.is_set() && reader.config().family == "mamba2" && inner != wanted)
    reader.fail(expand, fmt::format("'expand' times 'hidden_size' is {}, and heads have {} channels", wanted, inner));
}

void read_mamba2(ConfigReader& reader) {
  read_width(reader);
  reader.set("position", "none");
  const std::int64_t layers = needed(reader, {"num_hidden_layers"});
  reader.take("layers", {"num_hidden_layers"});
  check_expansion(reader, {"num_heads"}, {"head_dim"});
  require_flag(reader, "rms_norm", true);
  note_factors(reader, {"time_step_rank", "residual_in_fp32", "hidden_act", "time_step_floor"});
  const std::string part = mamba_part(reader, {"num_heads"}, {"head_dim"}, {"state_size"});
  if (layers > 0 && layers <= 10'000)
    for (std::int64_t i = 0; i < layers; ++i) reader.layers().add("mixer", "[" + part + "]");
}

/// Returns the letters of a Nemotron-H model's layers: M, E, * and -.
std::string letters_of(ConfigReader& reader) {
  const FoundKey pattern = reader.find({"hybrid_override_pattern"});
  if (pattern.is_set() && !pattern.assumed) return reader.text({"hybrid_override_pattern"}, "");
  const FoundKey list = reader.find({"layers_block_type"});
  if (!list.is_set() || list.value->kind != Node::Kind::sequence)
    throw core::InputError("'hybrid_override_pattern' is missing: which layers are M, E, * and -", reader.file());
  std::string letters;
  for (const Node& item : list.value->items) {
    const std::string& name = item.text;
    letters += name == "mamba" ? 'M' : name == "attention" ? '*' : name == "moe" ? 'E' : name == "mlp" ? '-' : '?';
    if (letters.back() == '?')
      reader.fail(list, fmt::format("'layers_block_type' has '{}'; known are mamba, attention, moe and mlp",
                                    name.substr(0, 40)));
  }
  return letters;
}

void read_latent_experts(ConfigReader& reader) {
  reader.take("experts", {"n_routed_experts"});
  reader.take("experts_per_token", {"num_experts_per_tok"});
  reader.take("expert_ffn_hidden", {"moe_intermediate_size"});
  if (reader.setting("experts_per_token") > reader.setting("experts"))
    reader.fail(reader.find({"num_experts_per_tok"}), "'num_experts_per_tok' is more than 'n_routed_experts'");
  const std::int64_t shared = reader.integer({"n_shared_experts"}, 1);
  const std::int64_t width = reader.integer({"moe_shared_expert_intermediate_size"}, 0);
  if (shared > 0 && width > 0) reader.set("shared_ffn_hidden", shared * width, "moe_shared_expert_intermediate_size");
}

std::string nemotron_part(ConfigReader& reader, char letter) {
  if (letter == 'M') return mamba_part(reader, {"mamba_num_heads"}, {"mamba_head_dim"}, {"ssm_state_size"});
  if (letter == '*') return R"("attention")";
  if (letter == '-') return R"("mlp")";
  const std::int64_t latent = reader.integer({"moe_latent_size"}, 0);
  return fmt::format(R"({{"experts": {{"correction_bias": true, "latent": {}}}}})", latent);
}

void read_nemotron_h(ConfigReader& reader) {
  read_width(reader);
  reader.take("heads", {"num_attention_heads"});
  reader.set("position", "none");
  read_grouped_heads(reader);
  if (const FoundKey width = reader.find({"attention_head_dim"}); width.is_set() && reader.setting("head_dim") == 0)
    reader.take("head_dim", {"attention_head_dim"});
  reader.take_if_set("ffn_hidden", {"intermediate_size"});
  for (const std::string_view key : {"attention_bias", "mlp_bias", "mamba_proj_bias"}) require_flag(reader, key, false);
  if (reader.text({"mlp_hidden_act"}, "relu2") != "relu2")
    reader.refuse(reader.find({"mlp_hidden_act"}), "'mlp_hidden_act' must be relu2, the activation of the family");
  reader.set("activation", "squared_relu");
  note_factors(reader, {"mamba_hidden_act", "mamba_ssm_cache_dtype", "use_mamba_kernels", "time_step_rank",
                        "time_step_floor", "time_step_limit", "time_step_min", "time_step_max"});
  reader.find({"expand", "mamba_expand", "moe_shared_expert_overlap", "mtp_hybrid_override_pattern", "hidden_act",
               "mtp_layers_block_type", "attention_dropout", "hidden_dropout", "sliding_window", "moe_latent_size",
               "n_shared_experts", "moe_shared_expert_intermediate_size", "moe_intermediate_size", "n_routed_experts",
               "num_experts_per_tok", "mamba_num_groups"});
  const std::string letters = letters_of(reader);
  const std::int64_t layers = reader.integer({"num_hidden_layers"}, static_cast<std::int64_t>(letters.size()));
  if (layers != static_cast<std::int64_t>(letters.size()))
    reader.fail(reader.find({"num_hidden_layers"}),
                fmt::format("'num_hidden_layers' is {}, and the pattern has {}", layers, letters.size()));
  if (letters.find_first_not_of("ME*-") != std::string::npos)
    reader.fail(reader.find({"hybrid_override_pattern"}), "'hybrid_override_pattern' may have M, E, * and - alone");
  if (letters.find('E') != std::string::npos) read_latent_experts(reader);
  for (const char letter : letters)
    reader.layers().add(std::string(1, letter), "[" + nemotron_part(reader, letter) + "]");
  leave_out_next_tokens(reader, false);  // each is two layers: attention and experts
}

/// Bamba's mixer, which Granite 4 has, too. A head is as wide as `mamba_expand` says, and may say so again.
std::string bamba_part(ConfigReader& reader) {
  require_flag(reader, "mamba_conv_bias", true);
  require_flag(reader, "mamba_proj_bias", false);
  const std::int64_t heads = needed(reader, {"mamba_n_heads"});
  const std::int64_t inner = needed(reader, {"mamba_expand"}) * reader.setting("hidden");
  const std::int64_t width = heads > 0 && inner % heads == 0 ? inner / heads : 0;
  const FoundKey said = reader.find({"mamba_d_head"});
  const bool says = said.is_set() && said.value->text != "auto";
  if (width == 0 || (says && reader.integer({"mamba_d_head"}, 0) != width))
    reader.fail(
        says ? said : reader.find({"mamba_n_heads"}),
        fmt::format("'mamba_expand' times 'hidden_size' is {}, and not 'mamba_n_heads', {}, times the width of a "
                    "head",
                    inner, heads));
  note_factors(reader, {"time_step_min", "time_step_max", "time_step_limit"});
  return fmt::format(
      R"({{"mamba2": {{"heads": {}, "head_dim": {}, "state": {}, "groups": {}, "convolution": {}, "chunk": {}}}}})",
      heads, width, needed(reader, {"mamba_d_state"}), needed(reader, {"mamba_n_groups"}),
      needed(reader, {"mamba_d_conv"}), needed(reader, {"mamba_chunk_size"}));
}

void add_bamba_layers(ConfigReader& reader, const std::vector<bool>& attends, const std::string& network) {
  const std::string mamba = bamba_part(reader);
  for (const bool attention : attends)
    reader.layers().add(attention ? "attention" : "mamba",
                        fmt::format("[{}, {}]", attention ? R"("attention")" : mamba, network));
}

void read_bamba(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  reader.set("biases", false);
  for (const std::string_view key : {"attention_bias", "mlp_bias"}) require_flag(reader, key, false);
  reader.find({"attn_rotary_emb"});  // the rotated part of a head
  std::vector<bool> attends(static_cast<std::size_t>(reader.setting("layers")), false);
  if (const FoundKey list = reader.find({"attn_layer_indices"}); list.is_set()) {
    if (list.value->kind != Node::Kind::sequence) reader.fail(list, "'attn_layer_indices' must be a list of layers");
    for (const Node& item : list.value->items) {
      core::OptionInfo info;
      info.minimum = 0;
      info.maximum = static_cast<double>(attends.size()) - 1;
      attends[static_cast<std::size_t>(std::get<std::int64_t>(import::read_value(item, info, list.key)))] = true;
    }
  }
  add_bamba_layers(reader, attends, R"("mlp")");
}

/// Beside the experts, or alone where there are none, is one network that all tokens visit.
void read_granite_hybrid(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  const bool routed = reader.integer({"num_local_experts"}, 0) > 0;
  std::erase_if(reader.values(),
                [](const ConfigValue& value) { return value.option == "ffn_hidden" || value.option == "position"; });
  reader.set("biases", false);
  require_flag(reader, "attention_bias", false);
  const std::string positions = reader.text({"position_embedding_type"}, "none");
  reader.set("position", positions == "rope" ? "rotary" : "none");
  if (reader.text({"normalization_function"}, "rmsnorm") != "rmsnorm")
    reader.refuse(reader.find({"normalization_function"}), "'normalization_function' must be rmsnorm");
  for (const char* key : {"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"})
    if (reader.find({key}).is_set()) reader.note(key, "a factor inside of kernels");
  reader.take(routed ? "shared_ffn_hidden" : "ffn_hidden", {"shared_intermediate_size"});
  reader.find({"num_experts_per_tok", "intermediate_size"});
  if (routed) {
    reader.take("expert_ffn_hidden", {"intermediate_size"});
    read_mixtral_experts(reader);
  }
  std::vector<bool> attends(static_cast<std::size_t>(reader.setting("layers")), false);
  if (const FoundKey types = reader.find({"layer_types", "layers_block_type"}); types.is_set())
    attends = layers_named(reader, types, "attention", "mamba");
  add_bamba_layers(reader, attends, routed ? R"("experts")" : R"("mlp")");
}

/// Returns whether each layer has full attention; the others have gated delta nets.
std::vector<bool> full_layers(ConfigReader& reader) {
  const std::int64_t layers = reader.setting("layers"), every = reader.integer({"full_attention_interval"}, 4);
  if (const FoundKey types = reader.find({"layer_types"}); types.is_set())
    return layers_named(reader, types, "full_attention", "linear_attention");
  std::vector<bool> full;
  for (std::int64_t layer = 0; layer < layers; ++layer) full.push_back(every > 0 && (layer + 1) % every == 0);
  return full;
}

std::string delta_part(ConfigReader& reader) {
  const std::int64_t key_heads = needed(reader, {"linear_num_key_heads"});
  const std::int64_t value_heads = needed(reader, {"linear_num_value_heads"});
  check_head_width(reader, {reader.find({"linear_num_value_heads"}), value_heads},
                   {reader.find({"linear_num_key_heads"}), key_heads});
  return fmt::format(
      R"({{"gated_delta": {{"key_heads": {}, "value_heads": {}, "key_dim": {}, "value_dim": {}, "convolution": {}}}}})",
      key_heads, value_heads, needed(reader, {"linear_key_head_dim"}), needed(reader, {"linear_value_head_dim"}),
      needed(reader, {"linear_conv_kernel_dim"}));
}

void read_delta_layers(ConfigReader& reader, const std::string& network) {
  const std::string gate =
      reader.flag({"attn_output_gate"}, true) ? R"({"attention": {"output_gate": "elements"}})" : R"("attention")";
  const std::string delta = delta_part(reader);
  for (const bool full : full_layers(reader))
    reader.layers().add(full ? "full" : "linear", fmt::format("[{}, {}]", full ? gate : delta, network));
  const std::string gate_of_delta = reader.text({"output_gate_type"}, "swish");
  if (gate_of_delta != "swish" && gate_of_delta != "silu" && gate_of_delta != "sigmoid")
    reader.refuse(
        reader.find({"output_gate_type"}),
        fmt::format("'output_gate_type' is '{}': known are swish, silu and sigmoid, which move the same bytes",
                    gate_of_delta.substr(0, 40)));
  reader.find({"mamba_ssm_dtype", "mtp_use_dedicated_embeddings", "full_attention_interval"});
  leave_out_next_tokens(reader);
}

void read_delta_decoder(ConfigReader& reader) {
  read_decoder(reader);
  read_grouped_heads(reader);
  read_feed_forward(reader, FeedForward::gated);
  require_flag(reader, "attention_bias", false);
  reader.set("biases", false);
  reader.set("query_key_norm", true);
}

void read_delta_dense(ConfigReader& reader) {
  read_delta_decoder(reader);
  read_delta_layers(reader, R"("mlp")");
}

void read_delta_experts(ConfigReader& reader) {
  read_delta_decoder(reader);
  read_qwen_experts(reader);
  reader.take_if_set("shared_ffn_hidden", {"shared_expert_intermediate_size"});
  if (reader.setting("dense_layers") > 0)
    reader.refuse(reader.find({"mlp_only_layers"}), "'mlp_only_layers' beside gated delta nets is not modelled");
  const bool shared = reader.setting("shared_ffn_hidden") > 0;
  read_delta_layers(reader, shared ? R"({"experts": {"shared_gate": true}})" : R"("experts")");
}

constexpr std::string_view kDeltaKeys = " layer_types attn_output_gate full_attention_interval linear_num_value_heads ";

}  // namespace

std::vector<Family> mixer_families() {
  return {
      {"bamba", "BambaConfig",
       R"({"vocab_size": 128000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu", "tie_word_embeddings": false,
           "mamba_n_heads": 128, "mamba_d_head": "auto", "mamba_n_groups": 1, "mamba_d_state": 256,
           "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 256, "rms_norm_eps": 1e-05,
           "initializer_range": 0.02, "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
           "max_position_embeddings": 262144})",
       read_bamba, " mamba_d_state "},
      {"granitemoehybrid", "GraniteMoeHybridConfig",
       R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "tie_word_embeddings": false,
           "num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 1024,
           "position_embedding_type": null, "mamba_n_heads": 128, "mamba_d_head": "auto", "mamba_n_groups": 1,
           "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 256, "rms_norm_eps": 1e-06,
           "initializer_range": 0.02, "rope_theta": 10000.0, "max_position_embeddings": 2048})",
       read_granite_hybrid, " layer_types layers_block_type mamba_d_state "},
      {"mamba2", "Mamba2Config",
       R"({"num_heads": 128, "head_dim": 64, "vocab_size": 32768, "hidden_size": 4096, "state_size": 128,
           "num_hidden_layers": 64, "expand": 2, "conv_kernel": 4, "n_groups": 8, "use_bias": false,
           "use_conv_bias": true, "rms_norm": true, "chunk_size": 256, "tie_word_embeddings": false,
           "layer_norm_epsilon": 1e-05, "initializer_range": 0.1})",
       read_mamba2, " state_size "},
      {"nemotron_h", "", R"({"tie_word_embeddings": false})", read_nemotron_h,
       " hybrid_override_pattern layers_block_type moe_latent_size mamba_num_heads ssm_state_size "},
      {"qwen3_5_moe_text", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_delta_experts,
       kDeltaKeys},
      {"qwen3_5_text", "", R"({"hidden_act": "silu", "tie_word_embeddings": false})", read_delta_dense, kDeltaKeys},
      {"qwen3_next", "Qwen3NextConfig",
       R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 48,
           "num_attention_heads": 16, "num_key_value_heads": 2, "hidden_act": "silu", "tie_word_embeddings": false,
           "attention_bias": false, "head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
           "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
           "decoder_sparse_step": 1, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
           "num_experts_per_tok": 10, "num_experts": 512, "norm_topk_prob": true, "rms_norm_eps": 1e-06,
           "initializer_range": 0.02, "rope_theta": 10000.0, "partial_rotary_factor": 0.25,
           "max_position_embeddings": 32768})",
       read_delta_experts, kDeltaKeys},
  };
}

}  // namespace manyworlds::experiments::models
