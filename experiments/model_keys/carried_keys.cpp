#include "experiments/model_keys/carried_keys.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "experiments/model_keys/activations.hpp"

namespace manyworlds::experiments::models {
namespace {

using import::Node;

/// Keys that are one argument as they are, each family with its own word for it.
struct PlainKeys {
  std::string_view argument;
  std::array<std::string_view, 6> keys;
};
constexpr PlainKeys kPlainKeys[] = {
    {"norm-epsilon",
     {"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon", "norm_eps", "layernorm_epsilon"}},
    {"init-method-std", {"initializer_range"}},
    {"activation-func-clamp-value", {"swiglu_limit"}}};
constexpr PlainKeys kRotaryKeys[] = {{"rotary-percent", {"partial_rotary_factor", "rotary_pct"}}};
constexpr PlainKeys kRouterKeys[] = {
    {"moe-router-topk-scaling-factor", {"routed_scaling_factor", "moe_router_scaling_factor"}},
    {"moe-aux-loss-coeff", {"router_aux_loss_coef", "aux_loss_alpha"}}};
constexpr const char* kRotations[] = {"rope_scaling", "rope_parameters"};

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

/// Where a value was found, and under which key.
struct Found {
  const Node* mapping = nullptr;  // null: nowhere
  std::string key;
  bool assumed = false;  // a default of the family's class, as the file does not have the key

  std::optional<double> number() const { return mapping == nullptr ? std::nullopt : number_in(*mapping, key); }
  std::string text() const { return mapping == nullptr ? "" : text_in(*mapping, key); }
};

/// The file, the mapping of its rotation (null: it has none), and behind them the defaults of the family's class.
struct Configuration {
  ConfigReader& reader;
  const Node& file;
  const Node* rotation = nullptr;
  bool assumed_rotation = false;

  /// Returns the first of these keys that the file has, at its top or in the mapping of the rotation, or else of those
  /// that the class has a default for. A null in the file is a value, too.
  template <class Keys>
  Found find(const Keys& keys) const {
    for (const Node* from : {&file, assumed_rotation ? nullptr : rotation})
      for (const std::string_view key : keys)
        if (from != nullptr && !key.empty() && from->find(key) != nullptr) return {from, std::string(key), false};
    for (const std::string_view key : keys)
      if (!key.empty() && reader.defaults().find(key) != nullptr) return {&reader.defaults(), std::string(key), true};
    return {};
  }
  Found find(const char* key) const { return find(std::array{std::string_view(key)}); }

  void carry(const Found& from, std::string_view argument, std::vector<std::string> values = {}) const {
    if (from.assumed) reader.note_carried_default(from.key, from.text());
    reader.carry(std::string(argument), std::move(values));
  }
};

template <class Keys>
void carry_plain(const Configuration& config, const Keys& all) {
  for (const auto& [argument, keys] : all)
    if (const Found found = config.find(keys); found.number() && is_carried_value(found.text()))
      config.carry(found, argument, {found.text()});
}

/// The base of the rotation is a whole number in Megatron-LM.
void carry_base(const Configuration& config) {
  const Found found = config.find(std::array<std::string_view, 2>{"rope_theta", "rotary_emb_base"});
  if (found.mapping != nullptr && found.mapping->find(found.key)->kind == Node::Kind::sequence)
    return config.reader.note(found.key, "a base of the rotation for each layer, which no argument carries");
  const std::optional<double> base = found.number();
  if (!base) return;
  constexpr double kLargest = 1e15;
  if (*base == std::floor(*base) && *base > 0 && *base < kLargest)
    config.carry(found, "rotary-base", {std::to_string(static_cast<std::int64_t>(*base))});
  else
    config.carry(found, "config.rope_theta", {fmt::format("{:g}", *base)});
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

void carry_rotation(const Configuration& config, const core::workload::Model& model) {
  ConfigReader& reader = config.reader;
  carry_base(config);
  const Found rotated = config.find("rotary_dim");
  const auto head = static_cast<double>(model.head_width());
  if (rotated.number() && head > 0 && !model.is_latent()) {
    if (*rotated.number() > head)
      reader.fail(reader.find({"rotary_dim"}),
                  fmt::format("'rotary_dim' is {:g}, more than a head is wide, {:g}", *rotated.number(), head));
    config.carry(rotated, "rotary-percent", {fmt::format("{:g}", *rotated.number() / head)});
  } else {
    carry_plain(config, kRotaryKeys);
  }
  if (model.is_latent()) reader.carry("rope-type", {"rope"});  // where Megatron-LM has YaRN otherwise
  if (config.rotation == nullptr) return;
  if (config.assumed_rotation) reader.note_carried_default("rope_scaling", text_in(*config.rotation, "rope_type"));
  carry_scaling(reader, *config.rotation, model.is_latent());
}

void carry_router(const Configuration& config) {
  ConfigReader& reader = config.reader;
  const Node& file = config.file;
  carry_plain(config, kRouterKeys);
  const std::string scores = text_in(file, "scoring_func");
  if (scores == "sigmoid") reader.carry("moe-router-score-function", {scores});
  if (const Found normed = config.find("norm_topk_prob"); normed.text() == "false" && scores != "sigmoid")
    config.carry(normed, "moe-router-pre-softmax");
  if (text_in(file, "topk_method") == "noaux_tc" || is_on(file, "use_routing_bias") ||
      is_on(file, "use_moe_router_bias"))
    reader.carry("moe-router-enable-expert-bias");
}

/// Returns the mapping of the rotation, and whether it is the default of the family's class.
std::pair<const Node*, bool> rotation_of(const Node& file, const Node& defaults) {
  const Node* found = nullptr;
  bool is_said = false;
  for (const char* key : kRotations)
    if (const Node* value = file.find(key); value != nullptr) {
      is_said = true;
      if (value->kind == Node::Kind::mapping) found = value;
    }
  const Node* assumed = is_said ? nullptr : defaults.find(kRotations[0]);
  return assumed == nullptr ? std::pair(found, false) : std::pair(assumed, true);
}

}  // namespace

void add_carried(ConfigReader& reader, const Node& file, const ModelConfig& config_read) {
  const core::workload::Model model = config_read.model();
  const auto [rotation, assumed_rotation] = rotation_of(file, reader.defaults());
  const Configuration config{reader, file, rotation, assumed_rotation};
  carry_plain(config, kPlainKeys);
  if (config_read.max_positions > 0)
    config.carry(config.find(kPositionKeys), "max-position-embeddings", {std::to_string(config_read.max_positions)});
  if (model.position == core::workload::Position::rotary) carry_rotation(config, model);
  if (function_named(text_in(file, "hidden_act")) == Function::squared_relu) reader.carry("squared-relu");
  if (model.has_experts()) carry_router(config);
}

std::vector<std::string> carried_keys() {
  std::vector<std::string> all{"rope_theta",          "rotary_emb_base",        "rotary_dim",  "hidden_act",
                               "scoring_func",        "norm_topk_prob",         "topk_method", "use_routing_bias",
                               "use_moe_router_bias", "max_position_embeddings"};
  all.insert(all.end(), std::begin(kRotations), std::end(kRotations));
  const auto add = [&](const auto& groups) {
    for (const PlainKeys& group : groups)
      for (const std::string_view key : group.keys)
        if (!key.empty()) all.emplace_back(key);
  };
  add(kPlainKeys);
  add(kRotaryKeys);
  add(kRouterKeys);
  return all;
}

std::vector<std::string> rotation_keys() {
  return {"rope_theta",
          "rope_type",
          "type",
          "factor",
          "low_freq_factor",
          "high_freq_factor",
          "original_max_position_embeddings",
          "beta_fast",
          "beta_slow",
          "mscale",
          "mscale_all_dim",
          "partial_rotary_factor",
          "rotary_pct"};
}

}  // namespace manyworlds::experiments::models
