#include "experiments/rules/models/fine_tuning_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/workload/layer/distillation.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/layer_kinds.hpp"
#include "core/workload/parts/attention.hpp"
#include "core/workload/parts/registry.hpp"
#include "core/workload/strategy/contiguous_split.hpp"
#include "experiments/config/architecture.hpp"
#include "experiments/rules/layouts/layout_rules.hpp"
#include "experiments/rules/layouts/overlap_rules.hpp"
#include "experiments/rules/models/architecture_rules.hpp"
#include "experiments/rules/models/document_rules.hpp"
#include "experiments/rules/models/expert_rules.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

namespace lora_weight = core::workload::lora_weight;
using core::workload::has_pair;
using core::workload::is_frozen;
using core::workload::is_generation;
using core::workload::is_inference;
using core::workload::LayerBranch;
using core::workload::LayerKind;
using core::workload::Model;
using core::workload::Strategy;

constexpr core::workload::Modules kPairWeights =
    core::workload::kAllLoraWeights | core::workload::kProjectionLoraWeights;

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
      "lora_weights {}{}{}",
      core::join_list(*named == 0 ? core::workload::kAllLoraWeights : *named, core::workload::lora_weight_names()),
      parts.empty() ? "" : ", parts ", fmt::join(parts, " "));
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

/// Returns what of a strategy experts with frozen weights cannot have.
Violation expert_strategy(const Strategy& strategy) {
  if (strategy.hot_experts) return "hot_experts true";
  if (strategy.stack.overlap_shared_expert) return "overlap_shared_expert true";
  return strategy.stack.delay_expert_weights ? Violation("delay_expert_weights true") : std::nullopt;
}

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
  return expert_strategy(strategy);
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
  std::vector<Rule> all{
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
          [](const LayerBranch& branch, const Strategy&) { return mixed_projections(branch); }),
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
  for (Rule& one : inference_rules()) all.push_back(std::move(one));
  return all;
}

namespace {

constexpr const char* kModelOpt =
    "TensorRT Model Optimizer @5a4242f, modelopt/torch/distill/plugins/megatron.py: LogitsKLLoss of logits of one "
    "shape";
constexpr const char* kModelOptStages =
    "TensorRT Model Optimizer @5a4242f, modelopt/torch/distill/plugins/megatron.py, "
    "get_tensor_shapes_adjust_fn_for_distillation(): both models have layers on every rank, without interleaving";

/// A rule of models with a teacher.
Rule teacher_rule(std::string name, std::string key, std::string reason, RuleSource source,
                  Violation (*check)(const Model& student, const Model& teacher, const Strategy& strategy)) {
  return rule(std::move(name), std::move(key), std::move(reason), std::move(source),
              [check](const ExperimentConfig& e) -> Violation {
                const Model& student = e.configuration.model;
                if (!student.teacher) return std::nullopt;
                return check(student, *student.teacher, e.configuration.strategy);
              });
}

/// Returns why a model has no logits of its tokens at the end of one residual stream.
Violation without_logits(const char* which, const Model& model) {
  if (!model.architecture) return std::nullopt;
  if (!core::workload::has_embedding(model) || !core::workload::has_head(model))
    return fmt::format("the {}'s architecture has another embedding or head", which);
  if (core::workload::has_tables(model)) return fmt::format("the {} has embedding tables", which);
  for (const core::workload::Block& block : model.architecture->blocks)
    for (const core::workload::Branch& branch : block.branches)
      if (branch.model->hidden != model.hidden || branch.model->sequence != model.sequence ||
          branch.part->reads_other_network() || branch.type == "hyper_connection")
        return fmt::format("block '{}' of the {} has another stream", block.name, which);
  return std::nullopt;
}

/// Returns why no teacher could be built of what describes it.
Violation unfit_sizes(const Model& student) {
  if (student.teacher || student.teacher_text.empty()) return std::nullopt;
  try {
    teacher_for(student);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return std::nullopt;
}

Violation unfit_layout(const Model& teacher, const Strategy& strategy) {
  if (strategy.virtual_stages > 1) return fmt::format("virtual_stages {}", strategy.virtual_stages);
  if (strategy.zero == 3) return "zero 3";
  if (core::workload::is_weighed(strategy.split)) return "a split by weight";
  if (strategy.stack.overlap_experts) return "overlap_experts true";
  if (strategy.data_parts != 0) return "data_parts";
  if (strategy.gradient_exchange != core::workload::GradientExchange::sums) return "gradient_exchange other than sums";
  return teacher.has_experts() && strategy.hot_experts ? Violation("hot_experts true") : std::nullopt;
}

/// Rules that a model meets by itself.
std::vector<Rule> rules_of_one_model() {
  std::vector<Rule> all;
  for (auto part :
       {architecture_rules(), model_rules(), attention_rules(), expert_rules(), document_rules(), overlap_rules()})
    for (Rule& one : part) all.push_back(std::move(one));
  return all;
}

/// Returns the experiment as if the teacher were its model.
ExperimentConfig of_teacher_alone(const ExperimentConfig& experiment) {
  ExperimentConfig alone = experiment;
  Model& model = alone.configuration.model;
  model = Model(*experiment.configuration.model.teacher);
  model.frozen = false;
  Strategy& strategy = alone.configuration.strategy;
  strategy = core::workload::teacher_strategy(strategy);
  strategy.stack.overlap_shared_expert = strategy.stack.delay_expert_weights = false;
  if (model.has_experts()) return alone;
  strategy.ep = strategy.etp = 1;
  strategy.capacity_factor = 0, strategy.pad_to_capacity = strategy.hot_experts = false;
  strategy.expert_gemm = core::workload::ExpertGemm::grouped;
  return alone;
}

Violation broken_by_teacher(const ExperimentConfig& experiment, GraphCache& graphs) {
  static const std::vector<Rule> all = rules_of_one_model();
  if (!experiment.configuration.model.teacher) return std::nullopt;
  const ExperimentConfig alone = of_teacher_alone(experiment);
  for (const Rule& one : all)
    if (const Violation values = one.check(alone, graphs))
      return fmt::format("{} ({}): {}", one.name, one.reason, *values);
  return std::nullopt;
}

}  // namespace

std::vector<Rule> distillation_rules() {
  const std::string key = "model.teacher";
  std::vector<Rule> all{
      rule("teacher_fits", key, "the sizes of a teacher must fit each other", {kConstruction, {"architecture_fits"}},
           [](const ExperimentConfig& e) { return unfit_sizes(e.configuration.model); }),
      teacher_rule("teacher_of_tokens", key,
                   "a teacher and its student need an embedding and a head of their own, and one residual stream; the "
                   "student has no mtp_layers",
                   {kConstruction, {"teacher_fits"}},
                   [](const Model& student, const Model& teacher, const Strategy&) -> Violation {
                     if (student.mtp_layers > 0) return fmt::format("mtp_layers {}", student.mtp_layers);
                     if (const Violation found = without_logits("student", student)) return found;
                     return without_logits("teacher", teacher);
                   }),
      teacher_rule("teacher_vocabulary", key, "a teacher must have the student's vocabulary: their logits are compared",
                   {kModelOpt, {"teacher_fits"}},
                   [](const Model& student, const Model& teacher, const Strategy&) -> Violation {
                     if (teacher.vocabulary == student.vocabulary) return std::nullopt;
                     return fmt::format("vocabulary of the teacher {}, of the student {}", teacher.vocabulary,
                                        student.vocabulary);
                   }),
      teacher_rule(
          "teacher_layout", key,
          "with a teacher inference is none, virtual_stages 1 and zero at most 2, and there is no split by weight, "
          "overlap_experts, data_parts, gradient_exchange other than sums, or hot_experts of the teacher",
          {kModelOptStages, {"teacher_fits"}},
          [](const Model& student, const Model& teacher, const Strategy& s) {
            if (is_inference(student)) return Violation("the step trains nothing");
            return unfit_layout(teacher, s);
          }),
      teacher_rule(
          "teacher_by_stages", "strategy.pp",
          "a teacher's layers must divide over the stages: they are dealt out evenly, whatever the student's are",
          {kModelOptStages, {"teacher_fits"}},
          [](const Model&, const Model& teacher, const Strategy& s) {
            return check_divisible("layers of the teacher", teacher.layers, "stages", s.stages().count());
          }),
  };
  all.push_back({"teacher_on_ranks",
                 "a teacher must meet the rules of models on the student's ranks",
                 key,
                 broken_by_teacher,
                 false,
                 kModelOptStages,
                 {"teacher_fits", "teacher_layout", "gpus_by_tp_pp"}});
  return all;
}

}  // namespace manyworlds::experiments
