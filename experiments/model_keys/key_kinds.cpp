#include "experiments/model_keys/key_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "experiments/model_keys/activations.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

enum class Kind : std::uint8_t {
  flag,
  whole,     // an integer
  count,     // an integer that is not negative
  number,    // finite
  positive,  // above 0
  share,     // from 0 to 1
  text,
  automatic,  // "auto"
  function,   // the name of an activation
  integers,   // a list
  numbers,    // a list
  texts,      // a list
  list,       // of anything
  mapping,
};

/// Keys, each between blanks, whose values are of one of these kinds. Those of `plain` say nothing that a layer's
/// kernels depend on, in any family; those of `others` do, or are known, in some families alone.
struct Group {
  std::vector<Kind> kinds;
  std::string_view plain, others;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all{
      {{Kind::flag},
       "_attn_implementation_autoset attention_in_fp32 do_sample is_decoder mtp_use_dedicated_embeddings "
       "norm_topk_prob output_attentions output_hidden_states output_past output_router_logits output_scores "
       "remove_invalid_values reorder_and_upcast_attn rescale_prenorm_residual residual_in_fp32 return_dict "
       "return_dict_in_generate rope_interleave scale_attention_softmax scale_attn_by_inverse_layer_idx "
       "scale_attn_weights seq_aux summary_proj_to_labels summary_use_proj tf_legacy_loss tie_encoder_decoder "
       "torchscript trust_remote_code unsloth_fixed use_bfloat16 use_cache use_flash_attn use_mrope use_return_dict",
       "_remove_final_layer_norm apply_residual_connection_post_layernorm apply_spec_augment "
       "attention_softmax_in_fp32 attn_uses_sequence_id bias_dropout_fusion block_use_swiglu block_use_xavier_init "
       "conv_use_xavier_init ctc_zero_infinity deterministic_flash_attn for_llm_compressor gradient_checkpointing "
       "index_share_for_mtp_iteration indexer_rope_interleave is_encoder_decoder is_gated_act learned_pos_emb "
       "masked_softmax_fusion moe_drop_tokens moe_random_routing_dropped_token moe_router_enable_routed_scaling "
       "moe_router_enable_shared_expert moe_shared_expert_overlap moe_use_aux_free need_fp32_gate norm_expert_weight "
       "norm_softmax offset_alibi postnorm pre_allocate_kv_cache prefix_lm reference_compile repad_logits_with_grad "
       "scale_attention_softmax_in_fp32 scale_embedding scale_input skip_bias_add skip_bias_add_qkv slow_but_exact "
       "sparse_prediction tie_weights_ tie_word_embeddings uniform_expert_assignment use_embedding_sharing "
       "use_mamba_kernels use_mixed_mlp_moe use_moe_router_bias use_parallel_embedding use_pos_enc use_qk_norm "
       "use_rmsnorm use_routing_bias use_unified_vision_chunk use_weighted_layer_sum"},
      {{Kind::whole}, "ignore_index", "sparse_pred_ignore_index"},
      {{Kind::count},
       "_sliding_window_pattern chunk_size_feed_forward cross_attention_hidden_size encoder_no_repeat_ngram_size "
       "ep_size initial_context_length max_length max_position_embeddings min_length model_max_length "
       "mtp_transformer_layers n_ctx n_group n_positions no_repeat_ngram_size num_beam_groups num_beams "
       "num_logits_to_keep num_return_sequences original_max_position_embeddings pretraining_tp seq_length top_k "
       "topk_group",
       "adapter_kernel_size adapter_stride attention_chunk_size attn_rotary_emb block_dim block_multiple_of "
       "cla_share_factor classifier_proj_size codevector_dim conv_dim_out encoder_stride expand experts_per_token "
       "extra_pos_embeddings first_k_dense_replace full_attention_interval hc_mult head_dim hidden_size "
       "image_seq_length index_skip_topk_offset index_topk_freq init_pos_emb_time intermediate_size layer_switch "
       "mamba_expand mamba_num_groups mask_channel_length mask_channel_min_space mask_feature_length "
       "mask_feature_min_masks mask_time_length mask_time_min_masks mask_time_min_space max_seq_len "
       "max_window_layers median_filter_width mlp_intermediate_size moe_latent_size "
       "moe_shared_expert_intermediate_size n_routed_experts n_shared_experts num_adapter_layers "
       "num_attention_groups num_codevector_groups num_codevectors_per_group num_experts_per_tok "
       "num_feat_extract_layers num_hash_layers num_heads num_hidden_layers num_labels num_local_experts "
       "num_negatives num_position_embeddings output_hidden_size pooler_fc_size pooler_num_attention_heads "
       "pooler_num_fc_layers pooler_output_size pooler_size_per_head proj_codevector_dim projection_dim q_lora_rank "
       "qk_head_dim qk_nope_head_dim qk_rope_head_dim relative_attention_max_distance rotary_dim sliding_window "
       "sliding_window_size v_head_dim verbose vocab_size xvector_output_dim"},
      {{Kind::number},
       "aux_loss_alpha diversity_penalty initializer_factor initializer_range layer_norm_eps layer_norm_epsilon "
       "length_penalty moe_router_scaling_factor mtp_loss_weight norm_eps norm_epsilon repetition_penalty "
       "rms_norm_eps rope_ratio routed_scaling_factor router_aux_loss_coef router_jitter_noise router_z_loss_coef "
       "temperature top_p typical_p",
       "alibi_bias_max attention_multiplier attention_value_scale attn_logit_softcapping attn_scale "
       "block_ffn_dim_multiplier block_mlp_init_scale block_norm_eps block_out_init_scale clip_qkv "
       "contrastive_logits_temperature dim_model_base diversity_loss_weight embedding_multiplier "
       "final_logit_softcapping floor_scale full_attn_alpha_factor full_attn_beta_factor hc_eps hc_sinkhorn_iters "
       "init_std initializer_cutoff_factor layernorm_epsilon layernorm_full_attention_alpha "
       "layernorm_full_attention_beta layernorm_linear_attention_alpha layernorm_linear_attention_beta "
       "layernorm_mlp_alpha layernorm_mlp_beta linear_attn_alpha_factor linear_attn_beta_factor "
       "logit_scale_init_value logits_scaling mask_channel_other mask_time_other mlp_alpha_factor mlp_beta_factor "
       "moe_jitter_eps moe_loss_weight moe_norm_min moe_normalize_expert_weights moe_router_topk_scaling_factor "
       "projector_ln_eps query_pre_attn_scalar residual_multiplier scale_depth scale_emb softmax_scale swiglu_alpha "
       "swiglu_limit time_step_floor time_step_max time_step_min"},
      {{Kind::positive},
       "rotary_emb_base",
       "compress_rope_theta global_rope_theta local_rope_theta rope_local_base_freq swa_rope_theta"},
      {{Kind::share},
       "summary_first_dropout",
       "activation_dropout attention_dropout attention_probs_dropout_prob attn_pdrop classif_dropout "
       "classifier_dropout decoder_layerdrop dropout dropout_positions emb_pdrop embd_pdrop embed_dropout "
       "embedding_dropout embedding_fraction encoder_layerdrop feat_extract_dropout feat_proj_dropout "
       "feat_quantizer_dropout final_dropout hidden_dropout hidden_dropout_prob mask_channel_prob mask_feature_prob "
       "mask_time_prob partial_rotary_factor projector_dropout qa_dropout resid_pdrop residual_dropout rotary_pct "
       "seq_classif_dropout summary_last_dropout"},
      {{Kind::text},
       "_attn_implementation _attn_implementation_internal _commit_hash _name_or_path attn_implementation dtype "
       "finetuning_task model_name model_type moe_router_dtype prefix problem_type router_dtype scale_fmt "
       "scoring_func summary_activation summary_type tokenizer_class topk_method torch_dtype transformers_version "
       "unsloth_version",
       "att_impl_type attn_impl attn_type cache_implementation classifier_pooling ctc_loss_reduction directionality "
       "expert_dtype hybrid_override_pattern init_device mamba_ssm_cache_dtype mamba_ssm_dtype "
       "mask_channel_selection mask_time_selection moe_gate moe_gate_act moe_layers_enum moe_router_activation "
       "mtp_hybrid_override_pattern order_of_interleaved_layers pooler_type position_embedding_type shared_moe_mode "
       "video_attn_type video_placeholder"},
      {{Kind::function},
       "",
       "activation activation_function classifier_activation dense_act_fn hidden_act hidden_activation "
       "mamba_hidden_act mlp_hidden_act pooler_act projector_hidden_act"},
      {{Kind::integers}, "", "compress_ratios deepstack_visual_indexes tdnn_dilation tdnn_dim tdnn_kernel"},
      {{Kind::texts},
       "architectures keys_to_ignore_at_inference",
       "layers_block_type mtp_layers_block_type yarn_only_types"},
      {{Kind::list},
       "bad_words_ids begin_suppress_tokens exponential_decay_length_penalty suppress_tokens",
       "attn_type_list block_configs dense_list forced_decoder_ids indexer_types layer_types mlp_layer_types "
       "moe_capacity no_rope_layers partial_rotary_factors swiglu_limits swiglu_limits_shared time_step_limit"},
      {{Kind::mapping},
       "audio_config auto_map id2label label2id pruned_heads task_specific_params text_config vision_config",
       "compression_config ffn_act_fn init_config quantization_config rope_parameters rope_scaling text_config_dict "
       "vision_config_dict"},
      {{Kind::text, Kind::mapping}, "bos_token eos_token", ""},
      {{Kind::flag, Kind::text}, "early_stopping", ""},
      {{Kind::flag, Kind::count}, "", "attn_temperature_tuning"},
      {{Kind::count, Kind::automatic}, "", "time_step_rank"},
      {{Kind::positive, Kind::numbers}, "rope_theta", ""},
      {{Kind::count, Kind::integers},
       "",
       "conv_dim moe_intermediate_size moe_layer_freq moe_topk num_experts num_shared_expert"},
      {{Kind::number, Kind::text}, "", "logit_scale"},
      {{Kind::whole, Kind::integers}, "", "vision_feature_layer"},
      {{Kind::text, Kind::list}, "", "index_topk_pattern"},
  };
  return all;
}

constexpr std::string_view kRotationCounts = "original_max_position_embeddings",
                           kRotationNumbers =
                               "attention_factor beta_fast beta_slow extrapolation_factor high_freq_factor "
                               "low_freq_factor mscale mscale_all_dim",
                           kRotationPositive = "factor rope_theta",
                           kRotationShares = "partial_rotary_factor rotary_pct", kRotationTexts = "rope_type type",
                           kRotationFlags = "mrope_interleaved truncate",
                           kRotationLists = "long_factor short_factor mrope_section";

const std::vector<Group>& rotation_groups() {
  static const std::vector<Group> all{
      {{Kind::count}, kRotationCounts, ""},      {{Kind::number}, kRotationNumbers, ""},
      {{Kind::positive}, kRotationPositive, ""}, {{Kind::share}, kRotationShares, ""},
      {{Kind::text}, kRotationTexts, ""},        {{Kind::flag}, kRotationFlags, ""},
      {{Kind::list}, kRotationLists, ""},
  };
  return all;
}

struct Known {
  const std::vector<Kind>* kinds = nullptr;
  bool plain = false;
};
using Table = std::map<std::string_view, Known>;

Table table_of(const std::vector<Group>& groups) {
  Table table;
  for (const Group& group : groups)
    for (const std::string_view keys : {group.plain, group.others})
      for (std::string_view left = keys; !left.empty();) {
        const std::size_t end = std::min(left.find(' '), left.size());
        table[left.substr(0, end)] = {&group.kinds, keys == group.plain};
        left.remove_prefix(std::min(end + 1, left.size()));
      }
  return table;
}

const Table& table() {
  static const Table all = table_of(groups());
  return all;
}

const Table& rotation_table() {
  static const Table all = table_of(rotation_groups());
  return all;
}

bool is_whole(const Node& value) {
  std::int64_t parsed = 0;
  const char* last = value.text.data() + value.text.size();
  const auto [end, error] = std::from_chars(value.text.data(), last, parsed);
  return value.kind == Node::Kind::scalar && !value.quoted && error == std::errc() && end == last;
}

std::optional<double> number_of(const Node& value) {
  double parsed = 0;
  const char* last = value.text.data() + value.text.size();
  const auto [end, error] = std::from_chars(value.text.data(), last, parsed);
  if (value.kind != Node::Kind::scalar || value.quoted || error != std::errc() || end != last) return std::nullopt;
  return std::isfinite(parsed) ? std::optional(parsed) : std::nullopt;
}

bool is_number(const Node& value) {
  return number_of(value).has_value();
}

bool is_text(const Node& value) {
  return value.kind == Node::Kind::scalar && value.quoted;
}

bool are_all(const Node& value, bool (*holds)(const Node&)) {
  return value.kind == Node::Kind::sequence && std::all_of(value.items.begin(), value.items.end(), holds);
}

bool is_of(const Node& value, Kind kind) {
  const std::optional<double> number = number_of(value);
  switch (kind) {
    case Kind::flag:
      return value.kind == Node::Kind::scalar && !value.quoted && (value.text == "true" || value.text == "false");
    case Kind::whole:
      return is_whole(value);
    case Kind::count:
      return is_whole(value) && *number >= 0;
    case Kind::number:
      return number.has_value();
    case Kind::positive:
      return number && *number > 0;
    case Kind::share:
      return number && *number >= 0 && *number <= 1;
    case Kind::text:
      return is_text(value);
    case Kind::automatic:
      return is_text(value) && value.text == "auto";
    case Kind::function:
      return is_text(value) && function_named(value.text);
    case Kind::integers:
      return are_all(value, is_whole);
    case Kind::numbers:
      return are_all(value, is_number);
    case Kind::texts:
      return are_all(value, is_text);
    case Kind::list:
      return value.kind == Node::Kind::sequence;
    case Kind::mapping:
      return value.kind == Node::Kind::mapping;
  }
  return false;
}

std::string_view words_of(Kind kind) {
  switch (kind) {
    case Kind::flag:
      return "true or false";
    case Kind::whole:
      return "an integer";
    case Kind::count:
      return "an integer of 0 or more";
    case Kind::number:
      return "a number";
    case Kind::positive:
      return "a number above 0";
    case Kind::share:
      return "a number from 0 to 1";
    case Kind::text:
      return "text";
    case Kind::automatic:
      return "\"auto\"";
    case Kind::function:
      return "the name of an activation function, as silu, gelu or relu";
    case Kind::integers:
      return "a list of integers";
    case Kind::numbers:
      return "a list of numbers";
    case Kind::texts:
      return "a list of texts";
    case Kind::list:
      return "a list";
    case Kind::mapping:
      return "an object";
  }
  return "";
}

std::string wrong_for(const std::vector<Kind>& kinds, std::string_view key, const Node& value) {
  if (value.kind == Node::Kind::null) return "";
  std::string expected;
  for (const Kind kind : kinds) {
    if (is_of(value, kind)) return "";
    expected += fmt::format("{}{}", expected.empty() ? "" : " or ", words_of(kind));
  }
  return fmt::format("'{}' must be {}, not {}", key, expected, describe(value));
}

/// Tokens by their names: one, several, or, of `bos_token`, its text.
const std::vector<Kind>* kinds_of_token(std::string_view key) {
  static const std::vector<Kind> id{Kind::whole, Kind::integers}, text{Kind::text, Kind::whole, Kind::mapping};
  if (key.ends_with("_token_id") || key.ends_with("_token_ids") || key.ends_with("_token_index")) return &id;
  return key.ends_with("_token") || key.ends_with("placeholder") ? &text : nullptr;
}

}  // namespace

bool is_plain_key(std::string_view key) {
  const auto found = table().find(key);
  return found == table().end() ? kinds_of_token(key) != nullptr : found->second.plain;
}

bool is_known_key(std::string_view key) {
  return table().contains(key) || kinds_of_token(key) != nullptr;
}

std::string wrong_kind(std::string_view key, const Node& value) {
  const auto found = table().find(key);
  const std::vector<Kind>* kinds = found == table().end() ? kinds_of_token(key) : found->second.kinds;
  return kinds == nullptr ? "" : wrong_for(*kinds, key, value);
}

std::string wrong_kind_in_rotation(std::string_view key, const Node& value) {
  const auto found = rotation_table().find(key);
  return found == rotation_table().end() ? "" : wrong_for(*found->second.kinds, key, value);
}

bool is_rotation_key(std::string_view key) {
  return rotation_table().contains(key);
}

}  // namespace manyworlds::experiments::models
