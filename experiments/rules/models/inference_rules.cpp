#include "experiments/rules/models/inference_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/parts/attention.hpp"
#include "experiments/rules/models/expert_rules.hpp"
#include "experiments/rules/models/model_parts.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::workload::is_generation;
using core::workload::is_inference;
using core::workload::LayerBranch;
using core::workload::Model;
using core::workload::Strategy;

/// Returns what of a strategy is about backward passes, which a step of inference has not.
Violation of_backward_passes(const Strategy& strategy) {
  const core::workload::ScheduleType& schedule = core::workload::schedule_type(strategy.schedule);
  if (!schedule.has_formula) return "schedule " + schedule.name;
  if (strategy.recompute != core::workload::Recompute::none) return "recompute";
  if (strategy.recompute_modules != 0) return "recompute_modules";
  if (strategy.expert_recompute_tokens > 0) return "expert_recompute_tokens";
  if (strategy.offload_modules != 0) return "offload_modules";
  if (strategy.gradient_exchange != core::workload::GradientExchange::sums) return "gradient_exchange other than sums";
  if (strategy.stack.overlap_experts) return "overlap_experts true";
  if (strategy.stack.post_validation) return "post_validation true";
  return split_expert_passes(strategy);
}

/// Types of parts whose forward passes outside of training have not been told from those of it.
constexpr std::array<std::string_view, 8> kOnlyTrained{"tables",     "dot_interaction",      "cross_interaction",
                                                       "perceptron", "convolution",          "batch_norm",
                                                       "bottleneck", "conformer_convolution"};
/// Types of parts that generate; attention does where tokens see all those before them.
constexpr std::array<std::string_view, 3> kGenerating{"attention", "mlp", "experts"};

/// Calls `visit` with every block of the model's architecture and each of its parts until it returns a violation.
template <class Visitor>
Violation first_of_branches(const Model& model, Visitor&& visit) {
  if (!model.architecture) return std::nullopt;
  for (const core::workload::Block& block : model.architecture->blocks)
    for (const core::workload::Branch& branch : block.branches)
      if (Violation found = visit(block, branch)) return found;
  return std::nullopt;
}

bool is_among(std::span<const std::string_view> types, const std::string& type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

Violation untold_part(const Model& model) {
  return first_of_branches(model, [](const auto& block, const auto& branch) -> Violation {
    if (!is_among(kOnlyTrained, branch.type)) return std::nullopt;
    return fmt::format("block '{}' has {}", block.name, branch.type);
  });
}

Violation part_without_cache(const Model& model) {
  return first_of_branches(model, [&](const auto& block, const auto& branch) -> Violation {
    if (!is_among(kGenerating, branch.type)) return fmt::format("block '{}' has {}", block.name, branch.type);
    if (branch.type == "attention" && !core::workload::sees_all_before(*branch.part))
      return fmt::format("block '{}': attention is not to all tokens before, or in chunks", block.name);
    if (branch.model->sequence == model.sequence) return std::nullopt;
    return fmt::format("block '{}': sequence {}, the model's is {}", block.name, branch.model->sequence,
                       model.sequence);
  });
}

Violation unfit_for_generation(const ExperimentConfig& e) {
  const Strategy& s = e.configuration.strategy;
  if (s.cp > 1) return fmt::format("cp {}", s.cp);
  if (s.sequence_parallel && s.tp > 1) return "sequence_parallel true";
  if (s.stack.attention == core::workload::AttentionKernel::unfused) return "attention unfused";
  if (!s.stack.grouped_query_fusion) return "grouped_query_fusion false";
  if (e.configuration.model.has_experts() && s.hot_experts) return "hot_experts true";
  if (e.configuration.model.has_experts() && s.tp > 1 && s.ep * s.etp != s.tp)
    return fmt::format("ep x etp {}, tp {}", s.ep * s.etp, s.tp);
  return e.configuration.model.documents ? Violation("documents") : std::nullopt;
}

/// A rule of steps that are forward passes alone.
Rule inference_rule(std::string name, std::string key, std::string reason, Violation (*check)(const ExperimentConfig&),
                    bool (*holds)(const Model&) = is_inference) {
  return rule(
      std::move(name), std::move(key), std::move(reason), {kConstruction, {"architecture_fits"}},
      [check, holds](const ExperimentConfig& e) { return holds(e.configuration.model) ? check(e) : std::nullopt; });
}

}  // namespace

std::vector<Rule> inference_rules() {
  return {
      rule("cached_tokens_of_generation", "model.cached_tokens", "cached_tokens needs inference generation",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Model& model = e.configuration.model;
             if (model.cached_tokens == 0 || is_generation(model)) return std::nullopt;
             return fmt::format("cached_tokens {}", model.cached_tokens);
           }),
      inference_rule("inference_of_merged_weights", "model.lora_rank",
                     "inference is for models without pairs of low rank, which are merged before",
                     [](const ExperimentConfig& e) {
                       return first_of_parts(e.configuration.model, [](const LayerBranch& branch) -> Violation {
                         if (branch.model.lora_rank == 0) return std::nullopt;
                         return fmt::format("lora_rank {}", branch.model.lora_rank);
                       });
                     }),
      inference_rule(
          "inference_passes", "model.inference",
          "inference is for schedules 1f1b, interleaved and gpipe, of which forward passes are left, without "
          "recomputation, offloading, factors of gradients, post_validation and what overlaps experts",
          [](const ExperimentConfig& e) { return of_backward_passes(e.configuration.strategy); }),
      inference_rule("inference_parts", "model.inference",
                     "inference is for transformers and mixers: embedding tables and parts for images are modelled as "
                     "they train",
                     [](const ExperimentConfig& e) { return untold_part(e.configuration.model); }),
      inference_rule(
          "generation_parts", "model.inference",
          "inference generation needs layers of causal attention without chunks, feed-forward networks and "
          "experts over the model's own sequence: what other parts keep from token to token is not modelled",
          [](const ExperimentConfig& e) { return part_without_cache(e.configuration.model); }, is_generation),
      inference_rule(
          "generation_layout", "model.inference",
          "inference generation needs fused attention, also of heads that share keys, cp 1, no "
          "sequence_parallel, no documents, no hot_experts, and with tp > 1 experts over the same ranks (ep x etp as "
          "tp): a cache is not divided over a context, and one new token of a sample is on all tensor ranks",
          unfit_for_generation, is_generation),
  };
}

}  // namespace manyworlds::experiments
