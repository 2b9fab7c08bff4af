// Rules about modules that a model does not have, and about settings without effect.
#include "experiments/rules/layouts/activation_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/step/layout/layer_split.hpp"
#include "core/workload/activations/activation_policy.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

namespace recompute = core::workload::recompute;
namespace offload = core::workload::offload;
using core::workload::LayerSplit;
using core::workload::Model;
using core::workload::Modules;
using core::workload::Recompute;
using core::workload::Strategy;

/// Returns the names of the requested modules that the model does not have; nothing if it has them all.
Violation missing_modules(Modules requested, const std::vector<std::string>& names, Modules expert_modules,
                          Modules dense_modules, Modules shared_modules, Modules latent_modules, const Model& model) {
  Modules unavailable = 0;
  if (!model.has_experts()) unavailable |= expert_modules;
  if (model.has_experts() && model.dense_layers == 0) unavailable |= dense_modules;
  if (model.shared_ffn_hidden == 0) unavailable |= shared_modules;
  if (!model.is_latent()) unavailable |= latent_modules;
  std::vector<std::string> missing_names;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (requested & unavailable & Modules{1} << i) missing_names.push_back(names[i]);
  if (missing_names.empty()) return std::nullopt;
  return core::join_list(missing_names);
}

/// Returns whether the schedule overlaps two passes. Orders that are computed from the costs of passes never do.
bool overlaps_passes(const Strategy& s) {
  const core::workload::ScheduleType& type = core::workload::schedule_type(s.schedule);
  if (type.needs_costs) return false;
  for (const core::workload::PassOrder& order : type.orders(s.pipeline()))
    for (const core::workload::PipelinePass& slot : order)
      if (slot.overlaps_next) return true;
  return false;
}

bool fits_light_ends(std::int64_t layers, std::int64_t stages) {
  return stages > 1 && (layers + 2) % stages == 0;
}

/// Returns whether giving each stage but the last the rounded-up share leaves layers for the last one.
bool fits_light_last(std::int64_t layers, std::int64_t stages) {
  return (stages - 1) * ((layers + stages - 1) / stages) < layers;
}

/// Returns whether stages with as many layers each, the empty ones at the ends, leave none but the last without layers.
bool fits_empty_layers(std::int64_t layers, std::int64_t empty, std::int64_t stages) {
  return stages > 1 && layers > (stages - 2) * ((layers + empty) / stages);
}

/// Returns the settings that would make the layers divide over the stages.
std::string suggested_splits(const Strategy& s, std::int64_t layers, std::int64_t stages) {
  const std::int64_t missing = (stages - layers % stages) % stages;
  std::vector<std::string> keys;
  if (s.empty_layers != missing) keys.push_back(fmt::format("strategy.empty_layers: {}", missing));
  if (s.split != LayerSplit::even) keys.emplace_back("strategy.split: even");
  std::vector<std::string> ways;
  if (missing == 0 || fits_empty_layers(layers, missing, stages))
    ways.push_back(fmt::format("{}", fmt::join(keys, " and ")));
  if (fits_light_ends(layers, stages)) ways.emplace_back("strategy.split: light_ends");
  if (fits_light_last(layers, stages)) ways.emplace_back("strategy.split: light_last");
  if (ways.empty()) ways.emplace_back("fewer stages, or each stage's layers in strategy.stage_layers");
  return fmt::format("set {}", fmt::join(ways, ", or "));
}

}  // namespace

std::vector<Rule> stage_rules() {
  return {
      rule("layers_by_stages", "strategy.pp",
           "layers must divide over the stages, of which there are pp x virtual_stages (dualpipe: pp)", {kArguments},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             const std::int64_t layers = e.configuration.model.layers, stages = s.stages().count();
             if (!s.stage_layers.empty()) return std::nullopt;  // checked by listed_layers
             if (s.split == LayerSplit::even && (layers + s.empty_layers) % stages == 0) return std::nullopt;
             if (s.split == LayerSplit::light_ends && fits_light_ends(layers, stages)) return std::nullopt;
             if (s.split == LayerSplit::light_last && fits_light_last(layers, stages)) return std::nullopt;
             if (s.split == LayerSplit::by_cost) return std::nullopt;       // checked by stages_by_cost
             if (core::workload::is_weighed(s.split)) return std::nullopt;  // checked by stages_by_weight
             return fmt::format("layers {}, stages {}; {}", layers, stages, suggested_splits(s, layers, stages));
           }),
      rule("stages_by_cost", "strategy.split",
           "split by_cost needs something in every stage: layers, the head, or behind it the logits' cast and the "
           "loss, in two more stages at most",
           {"nanotron, models/base.py, build_model(): a rank without a block has no parameters"},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             if (s.split != LayerSplit::by_cost || !s.stage_layers.empty()) return std::nullopt;
             const std::int64_t stages = s.stages().count();
             const std::int64_t head = core::workload::split_by_cost(e.configuration.model, stages).head_stage;
             if (stages <= head + 3) return std::nullopt;
             return fmt::format("layers {}, stages {}, of which {} have nothing", e.configuration.model.layers, stages,
                                stages - head - 3);
           }),
      rule("stages_by_weight", "strategy.split",
           "split by_parameters, by_time and by_memory need a layer for every stage, but for a first one with the "
           "embedding and a last one with the head; by_memory needs ranks with one chunk, and a schedule that does not "
           "follow from times",
           {"by construction: memory of a rank with several chunks is not that of one stage"},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             if (!core::workload::is_weighed(s.split) || !s.stage_layers.empty()) return std::nullopt;
             const std::string why = core::step::why_no_split(e.configuration);
             return why.empty() ? std::nullopt : Violation(why);
           }),
      rule("listed_layers", "strategy.stage_layers",
           "stage_layers lists every stage (there are pp x virtual_stages, dualpipe: pp), at least one layer in "
           "each but the first and the last, all layers of the model together, and goes with split even and no "
           "empty_layers",
           {"Megatron-LM, core/transformer/pipeline_parallel_layer_layout.py"},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             const auto& listed = s.stage_layers;
             if (listed.empty()) return std::nullopt;
             const std::int64_t stages = s.stages().count(), layers = e.configuration.model.layers;
             const std::int64_t sum = std::accumulate(listed.begin(), listed.end(), std::int64_t{0});
             bool inside = true;
             for (std::size_t i = 1; i + 1 < listed.size(); ++i) inside = inside && listed[i] > 0;
             if (static_cast<std::int64_t>(listed.size()) == stages && sum == layers && inside &&
                 s.split == LayerSplit::even && s.empty_layers == 0)
               return std::nullopt;
             return fmt::format("{} listed for {} stages, {} layers of {}, empty_layers {}", listed.size(), stages, sum,
                                layers, s.empty_layers);
           }),
      rule("empty_layers_fit", "strategy.empty_layers",
           "empty_layers go with split even, and no stage but the last may have nothing else",
           {"Megatron-LM, pipeline_parallel_layer_layout.py: stages without layers hold embedding or loss"},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             if (s.empty_layers == 0) return std::nullopt;
             const std::int64_t stages = s.stages().count(), layers = e.configuration.model.layers;
             if (s.split == LayerSplit::even && fits_empty_layers(layers, s.empty_layers, stages)) return std::nullopt;
             return fmt::format("layers {}, empty_layers {}, stages {}", layers, s.empty_layers, stages);
           }),
  };
}

std::vector<Rule> activation_rules() {
  return {
      rule("recompute_modules_beside", "strategy.recompute_modules",
           "recompute_modules need recompute none or selective: full and per_op recompute them all",
           {kTransformerConfig},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             if (s.recompute_modules == 0) return std::nullopt;
             if (s.recompute == Recompute::full) return "recompute full";
             return s.recompute == Recompute::per_op ? Violation("recompute per_op") : std::nullopt;
           }),
      rule("per_op_of_dense_layers", "strategy.recompute",
           "recompute per_op needs layers without experts and attention multi_head",
           {"torchtitan @9dec370, parallelisms/parallelize_llama.py: the linear layers of Llama are counted"},
           [](const ExperimentConfig& e) -> Violation {
             const Model& m = e.configuration.model;
             if (e.configuration.strategy.recompute != Recompute::per_op) return std::nullopt;
             if (!m.has_experts() && !m.is_latent()) return std::nullopt;
             return m.has_experts() ? "it has experts" : "attention latent";
           }),
      rule("recompute_modules_are_there", "strategy.recompute_modules",
           "moe_act and moe need experts, mlp and mlp_act layers without, shared_experts a shared_ffn_hidden, "
           "mla_up_proj attention latent",
           {kTransformerConfig},
           [](const ExperimentConfig& e) -> Violation {
             return missing_modules(e.configuration.strategy.recompute_modules,
                                    core::workload::recompute_module_names(), recompute::moe_act | recompute::moe,
                                    recompute::mlp | recompute::mlp_act, recompute::shared_experts,
                                    recompute::mla_up_proj, e.configuration.model);
           }),
      rule("recompute_where", "strategy.recompute_layers",
           "recompute_layers and recompute_stages (at most pp) need recompute or recompute_modules", {kArguments},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             if (s.recompute_layers == 0 && s.recompute_stages == 0) return std::nullopt;
             if (core::workload::recomputes(s) && s.recompute_stages <= s.pp) return std::nullopt;
             return fmt::format("recompute_layers {}, recompute_stages {}, pp {}", s.recompute_layers,
                                s.recompute_stages, s.pp);
           }),
      rule("listed_recompute", "strategy.stage_recompute_layers",
           "stage_recompute_layers lists every stage (there are pp x virtual_stages, dualpipe: pp) with no more layers "
           "than it has, and goes with recompute or recompute_modules, without recompute_layers and recompute_stages",
           {"Sun et al., AdaPipe, ASPLOS 2024: stages recompute what they need",
            {"layers_by_stages", "stages_by_cost", "stages_by_weight", "listed_layers", "empty_layers_fit"}},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             const auto& listed = s.stage_recompute_layers;
             if (listed.empty()) return std::nullopt;
             const std::int64_t stages = s.stages().count();
             bool inside = static_cast<std::int64_t>(listed.size()) == stages;
             for (std::int64_t i = 0; inside && i < stages; ++i)
               inside =
                   listed[static_cast<std::size_t>(i)] <= layers_before_virtual_stage(e.configuration.model, s, i + 1) -
                                                              layers_before_virtual_stage(e.configuration.model, s, i);
             if (inside && core::workload::recomputes(s) && s.recompute_layers == 0 && s.recompute_stages == 0)
               return std::nullopt;
             return fmt::format("{} listed for {} stages, recompute_layers {}, recompute_stages {}", listed.size(),
                                stages, s.recompute_layers, s.recompute_stages);
           }),
      rule("offload_modules_are_there", "strategy.offload_modules",
           "expert_fc1, moe_act and expert_fc2 need experts, mlp_fc1, mlp_act and mlp_fc2 layers without",
           {kTransformerConfig},
           [](const ExperimentConfig& e) -> Violation {
             return missing_modules(e.configuration.strategy.offload_modules, core::workload::offload_module_names(),
                                    offload::expert_fc1 | offload::moe_act | offload::expert_fc2,
                                    offload::mlp_fc1 | offload::mlp_act | offload::mlp_fc2, 0, 0,
                                    e.configuration.model);
           }),
      rule("offload_where", "strategy.offload_layers",
           "offload_layers and offload_stages (at most pp) need offload_modules", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             if (s.offload_layers == 0 && s.offload_stages == 0) return std::nullopt;
             if (s.offload_modules != 0 && s.offload_stages <= s.pp) return std::nullopt;
             return fmt::format("offload_layers {}, offload_stages {}, pp {}", s.offload_layers, s.offload_stages,
                                s.pp);
           }),
      rule("offload_alone", "strategy.offload_modules",
           "offload_modules need passes that run one after the other: no overlap_experts, and no schedule that runs "
           "two as one, as dualpipe and dualpipev do",
           {"by construction: copies go between passes that run one after the other",
            {"schedule_file_wanted", "schedule_fits"}},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             if (s.offload_modules == 0 || (!s.stack.overlap_experts && !overlaps_passes(s))) return std::nullopt;
             return fmt::format("schedule {}, overlap_experts {}", core::workload::schedule_type(s.schedule).name,
                                s.stack.overlap_experts);
           }),
  };
}

}  // namespace manyworlds::experiments
