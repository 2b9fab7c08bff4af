#include "experiments/models/carried_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace manyworlds::experiments::models {
namespace {

using import::Node;

/// Keys that are one argument as they are.
struct PlainKey {
  std::string_view key, argument;
};
constexpr PlainKey kPlainKeys[] = {{"rms_norm_eps", "norm-epsilon"},
                                   {"layer_norm_epsilon", "norm-epsilon"},
                                   {"layer_norm_eps", "norm-epsilon"},
                                   {"norm_epsilon", "norm-epsilon"},
                                   {"norm_eps", "norm-epsilon"},
                                   {"initializer_range", "init-method-std"},
                                   {"swiglu_limit", "activation-func-clamp-value"},
                                   {"partial_rotary_factor", "rotary-percent"},
                                   {"rotary_pct", "rotary-percent"}};
constexpr PlainKey kRouterKeys[] = {{"routed_scaling_factor", "moe-router-topk-scaling-factor"},
                                    {"moe_router_scaling_factor", "moe-router-topk-scaling-factor"},
                                    {"router_aux_loss_coef", "moe-aux-loss-coeff"},
                                    {"aux_loss_alpha", "moe-aux-loss-coeff"}};

/// Returns a number of a mapping; nothing if it has none.
std::optional<double> number_in(const Node& config, std::string_view key) {
  const Node* found = config.find(key);
  if (found == nullptr || found->kind != Node::Kind::scalar || found->text.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(found->text.c_str(), &end);
  return *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string text_in(const Node& config, std::string_view key) {
  const Node* found = config.find(key);
  return found != nullptr && found->kind == Node::Kind::scalar ? found->text : "";
}

bool is_on(const Node& config, std::string_view key) {
  return text_in(config, key) == "true";
}

template <class Keys>
void carry_plain(ConfigReader& reader, const Node& config, const Keys& keys) {
  for (const auto& [key, argument] : keys)
    if (number_in(config, key) && is_carried_value(text_in(config, key)))
      reader.carry(std::string(argument), {text_in(config, key)});
}

/// The base of the rotation is a whole number in Megatron-LM.
void carry_base(ConfigReader& reader, const Node& config, const Node* rotation) {
  std::optional<double> base = number_in(config, "rope_theta");
  if (!base) base = number_in(config, "rotary_emb_base");
  if (!base && rotation != nullptr) base = number_in(*rotation, "rope_theta");
  if (!base) return;
  constexpr double kLargest = 1e15;
  if (*base == std::floor(*base) && *base > 0 && *base < kLargest)
    reader.carry("rotary-base", {std::to_string(static_cast<std::int64_t>(*base))});
  else
    reader.carry("config.rope_theta", {fmt::format("{:g}", *base)});
}

bool has(const Node& rotation, std::string_view key, double expected) {
  return number_in(rotation, key).value_or(expected) == expected;
}

/// Longer positions: Llama 3.1's as Megatron-LM has them, with its constants; YaRN's of latent attention; linear ones.
void carry_scaling(ConfigReader& reader, const Node& rotation, bool latent) {
  std::string type = text_in(rotation, "rope_type");
  if (type.empty()) type = text_in(rotation, "type");
  if (type.empty() || type == "default" || type == "mrope") return;
  const auto factor = number_in(rotation, "factor");
  const std::string factor_text = text_in(rotation, "factor");
  const bool usual_llama = has(rotation, "low_freq_factor", 1) && has(rotation, "high_freq_factor", 4) &&
                           has(rotation, "original_max_position_embeddings", 8'192);
  const bool usual_yarn = has(rotation, "beta_fast", 32) && has(rotation, "beta_slow", 1) &&
                          has(rotation, "original_max_position_embeddings", 4'096);
  if (factor && type == "llama3" && usual_llama) {
    reader.carry("use-rope-scaling");
    reader.carry("rope-scaling-factor", {factor_text});
  } else if (factor && type == "yarn" && latent && usual_yarn) {
    reader.carry("rope-type", {"yarn"});
    reader.carry("rotary-scaling-factor", {factor_text});
    for (const auto& [key, argument] : {std::pair("mscale", "mscale"), {"mscale_all_dim", "mscale-all-dim"}})
      if (number_in(rotation, key)) reader.carry(argument, {text_in(rotation, key)});
  } else if (factor && type == "linear" && *factor == std::floor(*factor)) {
    reader.carry("rotary-seq-len-interpolation-factor", {fmt::format("{:.0f}", *factor)});
  } else {
    reader.carry("config.rope_scaling", {is_carried_value(type) ? type : "other"});
  }
}

void carry_rotation(ConfigReader& reader, const Node& config, const core::workload::Model& model) {
  const Node* rotation = nullptr;
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (const Node* found = config.find(key); found != nullptr && found->kind == Node::Kind::mapping) rotation = found;
  carry_base(reader, config, rotation);
  if (const auto rotated = number_in(config, "rotary_dim"); rotated && model.head_width() > 0 && !model.is_latent())
    reader.carry("rotary-percent", {fmt::format("{:g}", *rotated / static_cast<double>(model.head_width()))});
  if (rotation != nullptr && number_in(*rotation, "partial_rotary_factor"))
    reader.carry("rotary-percent", {text_in(*rotation, "partial_rotary_factor")});
  if (model.is_latent()) reader.carry("rope-type", {"rope"});  // where Megatron-LM has YaRN otherwise
  if (rotation != nullptr) carry_scaling(reader, *rotation, model.is_latent());
}

void carry_router(ConfigReader& reader, const Node& config) {
  carry_plain(reader, config, kRouterKeys);
  const std::string scores = text_in(config, "scoring_func");
  if (scores == "sigmoid") reader.carry("moe-router-score-function", {scores});
  if (text_in(config, "norm_topk_prob") == "false" && scores != "sigmoid") reader.carry("moe-router-pre-softmax");
  if (text_in(config, "topk_method") == "noaux_tc" || is_on(config, "use_routing_bias") ||
      is_on(config, "use_moe_router_bias"))
    reader.carry("moe-router-enable-expert-bias");
  if (number_in(config, "n_group").value_or(1) > 1 && number_in(config, "topk_group")) {
    reader.carry("moe-router-num-groups", {text_in(config, "n_group")});
    reader.carry("moe-router-group-topk", {text_in(config, "topk_group")});
  }
}

}  // namespace

void add_carried(ConfigReader& reader, const Node& config, const ModelConfig& config_read) {
  const core::workload::Model model = config_read.model();
  carry_plain(reader, config, kPlainKeys);
  if (config_read.max_positions > 0)
    reader.carry("max-position-embeddings", {std::to_string(config_read.max_positions)});
  if (model.position == core::workload::Position::rotary) carry_rotation(reader, config, model);
  const std::string activation = text_in(config, "hidden_act");
  if (activation == "relu2" || activation == "squared_relu" || activation == "relu_squared")
    reader.carry("squared-relu");
  if (model.has_experts()) carry_router(reader, config);
}

}  // namespace manyworlds::experiments::models
