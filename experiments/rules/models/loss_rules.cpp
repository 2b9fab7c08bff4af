#include "experiments/rules/models/loss_rules.hpp"

#include <fmt/format.h>

#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::workload::Model;

constexpr const char* kKey = "strategy.stack.loss_chunks";

/// A rule of losses in several chunks.
Rule chunk_rule(std::string name, std::string reason, RuleSource source, ConfigCheck check) {
  return rule(std::move(name), kKey, std::move(reason), std::move(source),
              [check = std::move(check)](const ExperimentConfig& e) {
                return e.configuration.strategy.stack.loss_chunks > 1 ? check(e) : std::nullopt;
              });
}

/// Returns why all tokens of a model do not go through a vocabulary layer and one loss of its own.
Violation without_one_loss(const Model& model) {
  if (!core::workload::has_head(model)) return "the architecture has another head";
  if (core::workload::is_generation(model)) return "inference generation";
  if (model.teacher) return "a teacher";
  return model.mtp_layers > 0 ? Violation(fmt::format("mtp_layers {}", model.mtp_layers)) : std::nullopt;
}

}  // namespace

std::vector<Rule> loss_rules() {
  return {
      chunk_rule(
          "loss_chunks_of_one_loss",
          "loss_chunks is for the cross entropy of all tokens behind the model's own head: a teacher's logits and "
          "those of multi-token prediction are whole, and steps that generate have those of last tokens",
          {"torchtitan @b5bcd76, models/deepseek_v3/mtp.py: not \"until ChunkedLoss supports MTP outputs\"; "
           "TensorRT Model Optimizer @5a4242f, modelopt/torch/distill/plugins/megatron.py: LogitsKLLoss of both "
           "models' logits",
           {"architecture_fits"}},
          [](const ExperimentConfig& e) { return without_one_loss(e.configuration.model); }),
      chunk_rule("tokens_by_loss_chunks",
                 "the tokens of a micro-batch on a context-parallel rank must be a multiple of loss_chunks",
                 {"torchtitan @b5bcd76, components/loss.py: \"sequence length must be divisible by num_chunks\"",
                  {"sequence_by_cp"}},
                 [](const ExperimentConfig& e) {
                   const auto& s = e.configuration.strategy;
                   return check_divisible("tokens", s.micro_batch * e.configuration.model.sequence / s.cp,
                                          "loss_chunks", s.stack.loss_chunks);
                 }),
  };
}

}  // namespace manyworlds::experiments
