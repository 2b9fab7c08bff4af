#include "experiments/rules/models/fine_tuning_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/layer_kinds.hpp"
#include "core/workload/parts/registry.hpp"
#include "experiments/rules/layouts/layout_rules.hpp"
#include "experiments/rules/models/expert_rules.hpp"
#include "experiments/rules/models/model_parts.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

namespace lora_weight = core::workload::lora_weight;
using core::workload::has_pair;
using core::workload::is_frozen;
using core::workload::is_inference;
using core::workload::LayerBranch;
using core::workload::LayerKind;
using core::workload::Model;
using core::workload::Strategy;

constexpr core::workload::Modules kPairWeights =
    core::workload::kAllLoraWeights | core::workload::kProjectionLoraWeights;

/// Whether some weights are frozen in a step that trains others.
bool has_frozen(const Model& model) {
  return !is_inference(model) && (is_frozen(model) || core::workload::has_frozen_part(model));
}

/// Returns the options and parts of a model with pairs that none of its parts has. Those beside experts and in latent
/// attention have a rule of their own.
Violation pairs_of_none(const Model& model) {
  std::int64_t weights = 0;
  std::optional<core::workload::Modules> named;
  for (const LayerKind kind : core::workload::layer_kinds(model))
    core::workload::for_each_branch(model, kind, [&](const LayerBranch& branch) {
      if (branch.model.lora_rank == 0) return;
      named = branch.model.lora_weights;
      if (branch.part.has_experts() || branch.model.is_latent()) ++weights;
      const core::workload::PartParameters pairs = branch.part.lora_parameters(branch.model);
      weights += pairs.sharded + pairs.replicated;
    });
  if (!named || weights > 0) return std::nullopt;
  std::set<std::string> parts;
  if (model.architecture)
    for (const core::workload::Block& block : model.architecture->blocks)
      for (const core::workload::Branch& branch : block.branches) parts.insert(branch.type);
  return fmt::format(
      "lora_weights {}{}{}{}",
      core::join_list(*named == 0 ? core::workload::kAllLoraWeights : *named, core::workload::lora_weight_names()),
      parts.empty() ? "" : ", and the model's parts are ", fmt::join(parts, ", "),
      parts.empty() ? "" : "; attention and mlp are those that have pairs");
}

/// Returns the pairs of a layer that its projections have as well, those of the halves of a layer that has no gate, or
/// the widths of keys and values that differ, of which pairs of projections take one.
Violation mixed_projections(const LayerBranch& branch) {
  const Model& model = branch.model;
  const auto named = [&](core::workload::Modules weights) {
    return "lora_weights " + core::join_list(model.lora_weights & weights, core::workload::lora_weight_names());
  };
  constexpr auto kAttention = lora_weight::linear_q | lora_weight::linear_k | lora_weight::linear_v;
  constexpr auto kHalves = lora_weight::linear_fc1_gate | lora_weight::linear_fc1_up;
  for (const auto& [layer, projections] :
       {std::pair(lora_weight::linear_qkv, kAttention), {lora_weight::linear_fc1, kHalves}})
    if (has_pair(model, layer) && has_pair(model, projections)) return named(layer | projections);
  if (has_pair(model, kHalves) && !model.is_gated()) return named(kHalves) + ", an activation without a gate";
  if (!has_pair(model, kAttention)) return std::nullopt;
  Model of_values = model;
  of_values.lora_rank = 1, of_values.lora_weights = lora_weight::linear_v;
  const std::int64_t values = branch.part.lora_parameters(of_values).sharded - model.hidden,
                     keys = model.kv() * model.head_width();
  if (values > 0 && values != keys) return fmt::format("keys of {} columns, values of {}", keys, values);
  return std::nullopt;
}

/// Types of parts whose gradients of inputs have not been told apart from those of weights.
constexpr std::array<std::string_view, 9> kAlwaysTrained{"sparse_attention",  "tables",     "dot_interaction",
                                                         "cross_interaction", "perceptron", "convolution",
                                                         "batch_norm",        "bottleneck", "conformer_convolution"};

Violation frozen_part(const Model& model) {
  if (!model.architecture || is_inference(model)) return std::nullopt;
  for (const core::workload::Block& block : model.architecture->blocks)
    for (const core::workload::Branch& branch : block.branches)
      if (is_frozen(*branch.model) &&
          std::find(kAlwaysTrained.begin(), kAlwaysTrained.end(), branch.type) != kAlwaysTrained.end())
        return fmt::format("block '{}' has {}", block.name, branch.type);
  return std::nullopt;
}

Rule lora_rank_rule(std::string name, std::string reason, std::string source,
                    Violation (*check)(const LayerBranch&, const Strategy&), std::string key = "model.lora_rank") {
  return rule(std::move(name), std::move(key), std::move(reason), {std::move(source), {"architecture_fits"}},
              [check](const ExperimentConfig& e) -> Violation {
                return first_of_parts(e.configuration.model, [&](const LayerBranch& branch) -> Violation {
                  if (branch.model.lora_rank == 0) return std::nullopt;
                  return check(branch, e.configuration.strategy);
                });
              });
}

}  // namespace

std::vector<Rule> fine_tuning_rules() {
  return {
      rule("lora_weights_wanted", "model.lora_weights", "lora_weights needs a lora_rank", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Model& model = e.configuration.model;
             const bool listed = (model.lora_weights & kPairWeights) != 0;
             return !listed || model.lora_rank > 0 ? std::nullopt : Violation("lora_rank 0");
           }),
      rule("lora_of_linear_layers", "model.lora_rank",
           "lora_rank needs a linear layer of attention or of a feed-forward network that lora_weights names",
           {"by construction; Megatron-Bridge, peft/lora.py, has pairs beside target_modules", {"architecture_fits"}},
           [](const ExperimentConfig& e) { return pairs_of_none(e.configuration.model); }),
      rule("something_trained", "model.frozen", "a training step needs a weight that is trained",
           {kConstruction, {"architecture_fits", "lora_of_linear_layers"}},
           [](const ExperimentConfig& e) -> Violation {
             const Model& model = e.configuration.model;
             if (!has_frozen(model) || core::workload::trained_parameters(model) > 0) return std::nullopt;
             return "all parts are frozen";
           }),
      lora_rank_rule("lora_rank_by_tp", "lora_rank must be a multiple of tp", kDivide,
                     [](const LayerBranch& branch, const Strategy& s) {
                       return check_divisible("lora_rank", branch.model.lora_rank, "tp", s.tp);
                     }),
      lora_rank_rule("lora_rank_by_hidden",
                     "lora_rank must be at most hidden: a pair of a higher rank is larger than the square weight "
                     "beside it",
                     "Hu et al. 2021, LoRA, section 4.1: r << min(d, k)",
                     [](const LayerBranch& branch, const Strategy&) -> Violation {
                       if (branch.model.lora_rank <= branch.model.hidden) return std::nullopt;
                       return fmt::format("lora_rank {}, hidden {}", branch.model.lora_rank, branch.model.hidden);
                     }),
      lora_rank_rule("lora_of_dense_layers",
                     "lora_rank is for multi-head attention and feed-forward networks: pairs beside experts and "
                     "latent attention are not supported",
                     "by construction; Megatron-Bridge, peft/utils.py, has pairs for each expert or one for all",
                     [](const LayerBranch& branch, const Strategy&) -> Violation {
                       if (branch.part.has_experts()) return fmt::format("experts {}", branch.model.experts);
                       return branch.model.is_latent() ? Violation("attention latent") : std::nullopt;
                     }),
      lora_rank_rule("lora_of_fused_projections",
                     "lora_weights linear_qkv and linear_fc1 need projection_fusion; without it each projection has a "
                     "pair of its own: linear_q, linear_k, linear_v, linear_fc1_gate, linear_fc1_up",
                     "by construction; Megatron-Bridge has them as canonical_lora",
                     [](const LayerBranch& branch, const Strategy& s) -> Violation {
                       const bool several =
                           has_pair(branch.model, lora_weight::linear_qkv) ||
                           (has_pair(branch.model, lora_weight::linear_fc1) && branch.model.is_gated());
                       if (s.stack.projection_fusion || !several) return std::nullopt;
                       return "projection_fusion false";
                     }),
      lora_rank_rule(
          "lora_of_projections",
          "lora_weights has a pair of a layer or pairs of its projections, not both: linear_qkv or linear_q, "
          "linear_k and linear_v, as wide as keys, linear_fc1 or, with a gate, linear_fc1_gate and linear_fc1_up",
          "Megatron-Bridge, peft/canonical_lora.py, which refuses linear_qkv and linear_fc1",
          [](const LayerBranch& branch, const Strategy&) { return mixed_projections(branch); }, "model.lora_weights"),
      rule("frozen_parts", "model.architecture",
           "frozen is for parts of transformers and mixers: of an index of attention, of embedding tables and of parts "
           "for images it is not supported",
           {kConstruction}, [](const ExperimentConfig& e) { return frozen_part(e.configuration.model); }),
      rule("frozen_experts", "model.frozen",
           "frozen experts need a layer in one pass: without hot_experts, overlap_shared_expert and "
           "delay_expert_weights",
           {kConstruction, {"architecture_fits"}},
           [](const ExperimentConfig& e) {
             return first_of_parts(e.configuration.model, [&](const LayerBranch& branch) -> Violation {
               if (!branch.part.has_experts() || !is_frozen(branch.model) || is_inference(branch.model))
                 return std::nullopt;
               return split_expert_passes(e.configuration.strategy);
             });
           }),
      rule("frozen_recompute", "strategy.recompute",
           "recompute per_op is for models without frozen weights: it counts GEMMs whose outputs are saved",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const bool per_op = e.configuration.strategy.recompute == core::workload::Recompute::per_op;
             return per_op && has_frozen(e.configuration.model) ? Violation("recompute per_op") : std::nullopt;
           }),
      rule("frozen_sums_gradients", "strategy.gradient_exchange",
           "gradient_exchange other than sums is for models without frozen weights", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const bool sums = e.configuration.strategy.gradient_exchange == core::workload::GradientExchange::sums;
             return !sums && has_frozen(e.configuration.model) ? Violation("frozen weights") : std::nullopt;
           }),
  };
}

}  // namespace manyworlds::experiments
