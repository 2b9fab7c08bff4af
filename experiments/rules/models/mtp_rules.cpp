#include "experiments/rules/models/mtp_rules.hpp"

#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::workload::Model;
using core::workload::Strategy;

/// Returns what keeps a model from predicting further tokens with layers like its last one.
Violation unfit_model(const Model& model) {
  if (core::workload::is_inference(model)) return "nothing is trained in a step of inference";
  if (core::workload::has_frozen_part(model)) return "a part is frozen";
  if (!model.architecture) return std::nullopt;
  if (!core::workload::has_embedding(model) || !core::workload::has_head(model))
    return "the architecture has another embedding or head";
  const core::workload::Block& last = model.architecture->block_of(model.layer_kind(model.layers - 1));
  if (last.branches.size() < 2) return fmt::format("block '{}' is {} alone", last.name, last.branches.front().type);
  for (const core::workload::Branch& branch : last.branches)
    if (branch.part->reads_other_network() || branch.part->tables() != nullptr || branch.type == "hyper_connection")
      return fmt::format("block '{}' has {}", last.name, branch.type);
  const Model& stream = *last.branches.front().model;
  if (stream.hidden != model.hidden || stream.sequence != model.sequence)
    return fmt::format("block '{}' has hidden {}, sequence {}", last.name, stream.hidden, stream.sequence);
  return std::nullopt;
}

/// Returns what of a strategy is not built with such layers.
Violation unfit_layout(const Model& model, const Strategy& strategy) {
  if (!strategy.stages().first_and_last_share_rank()) {
    if (strategy.zero == 3) return fmt::format("zero 3, pp {}", strategy.pp);
    if (model.position == core::workload::Position::learned) return fmt::format("position learned, pp {}", strategy.pp);
  }
  if (strategy.split == core::workload::LayerSplit::by_cost && strategy.stage_layers.empty()) return "split by_cost";
  if (strategy.recompute == core::workload::Recompute::per_op) return "recompute per_op";
  if (strategy.gradient_exchange != core::workload::GradientExchange::sums) return "gradient_exchange other than sums";
  return std::nullopt;
}

}  // namespace

std::vector<Rule> mtp_rules() {
  return {
      rule("mtp_of_last_layer", "model.mtp_layers",
           "mtp_layers needs a model that is trained as a whole, with an embedding and a head of its own, whose last "
           "layer has several parts, of the model's width, none of which reads another network, a table or several "
           "streams: they repeat it",
           {"Megatron-LM, core/models/gpt/gpt_layer_specs.py, get_gpt_mtp_block_spec(): the last layer's",
            {"architecture_fits"}},
           [](const ExperimentConfig& e) -> Violation {
             const Model& model = e.configuration.model;
             return model.mtp_layers == 0 ? std::nullopt : unfit_model(model);
           }),
      rule("mtp_layout", "model.mtp_layers",
           "mtp_layers is not built with split by_cost, recompute per_op, gradient_exchange other than sums, or, where "
           "the last stage has a copy of the first one's token table, with zero 3 or learned positions",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& c = e.configuration;
             return c.model.mtp_layers == 0 ? std::nullopt : unfit_layout(c.model, c.strategy);
           }),
      rule("mtp_beside_overlap", "model.mtp_layers", "with overlap_experts mtp_layers is 1 at most",
           {kTransformerConfig},
           [](const ExperimentConfig& e) -> Violation {
             const auto& c = e.configuration;
             if (!c.strategy.stack.overlap_experts || c.model.mtp_layers <= 1) return std::nullopt;
             return fmt::format("mtp_layers {}", c.model.mtp_layers);
           }),
  };
}

}  // namespace manyworlds::experiments
