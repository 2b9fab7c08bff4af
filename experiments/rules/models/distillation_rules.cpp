#include "experiments/rules/models/distillation_rules.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/workload/layer/distillation.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/strategy/contiguous_split.hpp"
#include "experiments/key_contents/architecture.hpp"
#include "experiments/rules/layouts/layout_rules.hpp"
#include "experiments/rules/layouts/overlap_rules.hpp"
#include "experiments/rules/models/architecture_rules.hpp"
#include "experiments/rules/models/document_rules.hpp"
#include "experiments/rules/models/expert_rules.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::workload::is_inference;
using core::workload::Model;
using core::workload::Strategy;

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
