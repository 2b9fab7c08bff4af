#include "experiments/rules/fine_tuning_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/layer_kinds.hpp"
#include "core/workload/parts/registry.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

namespace lora_weight = core::workload::lora_weight;
using core::workload::has_pair;
using core::workload::is_frozen;
using core::workload::LayerBranch;
using core::workload::LayerKind;
using core::workload::Model;
using core::workload::Strategy;

/// Calls `visit` with every part of the model until it returns a violation.
template <class Visitor>
Violation first_of_parts(const Model& model, Visitor&& visit) {
  Violation found;
  for (const LayerKind kind : core::workload::layer_kinds(model))
    core::workload::for_each_branch(model, kind, [&](const LayerBranch& branch) {
      if (!found) found = visit(branch);
    });
  return found;
}

bool has_frozen(const Model& model) {
  return is_frozen(model) || core::workload::has_frozen_part(model);
}

/// Types of parts whose gradients of inputs have not been told apart from those of weights.
constexpr std::array<std::string_view, 8> kAlwaysTrained{"sparse_attention",  "tables",     "dot_interaction",
                                                         "cross_interaction", "perceptron", "convolution",
                                                         "batch_norm",        "bottleneck"};

Violation frozen_part(const Model& model) {
  if (!model.architecture) return std::nullopt;
  for (const core::workload::Block& block : model.architecture->blocks)
    for (const core::workload::Branch& branch : block.branches)
      if (is_frozen(*branch.model) &&
          std::find(kAlwaysTrained.begin(), kAlwaysTrained.end(), branch.type) != kAlwaysTrained.end())
        return fmt::format("block '{}' has {}", block.name, branch.type);
  return std::nullopt;
}

/// Returns what of a strategy experts with frozen weights cannot have.
Violation expert_strategy(const Strategy& strategy) {
  if (strategy.hot_experts) return "hot_experts true";
  if (strategy.stack.overlap_shared_expert) return "overlap_shared_expert true";
  return strategy.stack.delay_expert_weights ? Violation("delay_expert_weights true") : std::nullopt;
}

Rule lora_rank_rule(std::string name, std::string reason, std::string source,
                    Violation (*check)(const LayerBranch&, const Strategy&)) {
  return rule(std::move(name), "model.lora_rank", std::move(reason), {std::move(source), {"architecture_fits"}},
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
             return model.lora_weights == 0 || model.lora_rank > 0 ? std::nullopt : Violation("lora_rank 0");
           }),
      rule("something_trained", "model.frozen", "a training step needs a weight that is trained",
           {kConstruction, {"architecture_fits"}},
           [](const ExperimentConfig& e) -> Violation {
             const Model& model = e.configuration.model;
             if (!has_frozen(model) || core::workload::trained_parameters(model) > 0) return std::nullopt;
             return "all parts are frozen";
           }),
      lora_rank_rule("lora_rank_by_tp", "lora_rank must be a multiple of tp", kDivide,
                     [](const LayerBranch& branch, const Strategy& s) {
                       return check_divisible("lora_rank", branch.model.lora_rank, "tp", s.tp);
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
                     "lora_rank needs projection_fusion: a pair of each projection is not supported",
                     "by construction; Megatron-Bridge has them as canonical_lora",
                     [](const LayerBranch& branch, const Strategy& s) -> Violation {
                       const bool several = has_pair(branch.model, lora_weight::linear_qkv) ||
                                            has_pair(branch.model, lora_weight::linear_fc1);
                       if (s.stack.projection_fusion || !several) return std::nullopt;
                       return "projection_fusion false";
                     }),
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
               if (!branch.part.has_experts() || !is_frozen(branch.model)) return std::nullopt;
               return expert_strategy(e.configuration.strategy);
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
