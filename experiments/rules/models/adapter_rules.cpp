#include "experiments/rules/models/adapter_rules.hpp"

#include <fmt/format.h>

#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "experiments/rules/models/model_parts.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::workload::LayerBranch;
using core::workload::Model;
using core::workload::Strategy;

constexpr const char* kNemo =
    "NeMo @8cfedd7, collections/nlp/modules/common/megatron/adapters/qlora.py, NF4LinearWrapper: \"Tensor Parallel is "
    "not supported\"";
constexpr const char* kMegatronBridge = "Megatron-Bridge @067f987, peft/dora.py and peft/dora_layers.py";

bool in_four_bits(const Model& model) {
  return model.frozen_weights == core::workload::WeightFormat::nf4;
}

bool has_projections(const Model& model) {
  return (model.lora_weights & core::workload::kProjectionLoraWeights) != 0;
}

Rule part_rule(std::string name, std::string key, std::string reason, RuleSource source,
               Violation (*check)(const LayerBranch&)) {
  return rule(std::move(name), std::move(key), std::move(reason), std::move(source),
              [check](const ExperimentConfig& e) { return first_of_parts(e.configuration.model, check); });
}

/// Returns the first part whose weights in 4 bits are not those of attention or of a feed-forward network.
Violation other_linear_layers(const Model& model) {
  const Violation found = first_of_parts(model, [](const LayerBranch& branch) -> Violation {
    if (!in_four_bits(branch.model)) return std::nullopt;
    if (branch.part.has_experts()) return fmt::format("experts {}", branch.model.experts);
    return branch.model.is_latent() ? Violation("attention latent") : std::nullopt;
  });
  if (found || !model.architecture) return found;
  for (const core::workload::Block& block : model.architecture->blocks)
    for (const core::workload::Branch& branch : block.branches)
      if (in_four_bits(*branch.model) && branch.type != "attention" && branch.type != "mlp")
        return fmt::format("block '{}' has {}", block.name, branch.type);
  return std::nullopt;
}

Violation whole_on_other_ranks(const Strategy& strategy) {
  using core::workload::Precision;
  if (strategy.tp > 1) return fmt::format("tp {}", strategy.tp);
  if (strategy.zero == 3) return "zero 3";
  const Precision precision = strategy.stack.precision;
  return precision == Precision::bf16 || precision == Precision::fp16 ? std::nullopt : Violation("precision");
}

bool has_parts_in_four_bits(const Model& model) {
  const auto of_part = [](const LayerBranch& branch) {
    return in_four_bits(branch.model) ? Violation("nf4") : std::nullopt;
  };
  return first_of_parts(model, of_part).has_value();
}

}  // namespace

std::vector<Rule> adapter_rules() {
  return {
      rule("four_bits_of_frozen_weights", "model.frozen_weights",
           "frozen_weights nf4 needs weights that are frozen, in a step that trains others: give frozen or lora_rank",
           {"Dettmers et al. 2023 (QLoRA), section 3: gradients of pairs of low rank alone", {"architecture_fits"}},
           [](const ExperimentConfig& e) -> Violation {
             const Model& model = e.configuration.model;
             if (core::workload::is_inference(model)) {
               return has_parts_in_four_bits(model) ? Violation("the step trains nothing") : std::nullopt;
             }
             return first_of_parts(model, [](const LayerBranch& branch) -> Violation {
               const bool holds = !in_four_bits(branch.model) || core::workload::is_frozen(branch.model);
               return holds ? std::nullopt : Violation("a part is trained");
             });
           }),
      rule("four_bits_of_dense_layers", "model.frozen_weights",
           "frozen_weights nf4 is for multi-head attention and feed-forward networks, whose weights are matrices of "
           "linear layers",
           {kNemo, {"architecture_fits"}},
           [](const ExperimentConfig& e) { return other_linear_layers(e.configuration.model); }),
      rule(
          "four_bits_on_a_rank", "model.frozen_weights",
          "frozen_weights nf4 needs tp 1, zero below 3 and precision bf16 or fp16: gathers of 4 bits are not modelled, "
          "and GEMMs have 16",
          {kNemo, {"architecture_fits"}},
          [](const ExperimentConfig& e) {
            return has_parts_in_four_bits(e.configuration.model) ? whole_on_other_ranks(e.configuration.strategy)
                                                                 : std::nullopt;
          }),
      part_rule("magnitudes_of_pairs", "model.lora_magnitudes",
                "lora_magnitudes needs pairs of low rank (lora_rank) beside whole layers in 16 bits, and no dropout, "
                "with which each layer would have to run once more",
                {kMegatronBridge, {"architecture_fits"}},
                [](const LayerBranch& branch) -> Violation {
                  const Model& model = branch.model;
                  if (!model.lora_magnitudes) return std::nullopt;
                  if (model.lora_rank == 0) return "lora_rank 0";
                  if (model.dropout) return "dropout true";
                  if (has_projections(model)) return "lora_weights of a projection";
                  return in_four_bits(model) ? Violation("frozen_weights nf4") : std::nullopt;
                }),
  };
}

}  // namespace manyworlds::experiments
