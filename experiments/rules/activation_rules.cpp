// Modules that a model does not have, and settings that mean nothing beside others.
#include "experiments/rules/activation_rules.hpp"

#include <fmt/format.h>

#include <numeric>

#include "core/base/error.hpp"

namespace manyworlds::experiments {
namespace {

namespace again = core::workload::again;
namespace away = core::workload::away;
using core::workload::Model;
using core::workload::Modules;
using core::workload::Recompute;
using core::workload::Split;
using core::workload::Strategy;

/// The names of what of `asked` a model does not have; nothing if it has all.
Broken absent(Modules asked, const std::vector<std::string>& names, Modules of_experts, Modules of_dense,
              Modules of_shared, Modules of_latent, const Model& model) {
  Modules without = 0;
  if (!model.has_experts()) without |= of_experts;
  if (model.has_experts() && model.dense_layers == 0) without |= of_dense;
  if (model.shared_ffn_hidden == 0) without |= of_shared;
  if (!model.is_latent()) without |= of_latent;
  std::vector<std::string> some;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (asked & without & Modules{1} << i) some.push_back(names[i]);
  if (some.empty()) return std::nullopt;
  return core::join_several(some);
}

/// Orders that follow from what passes cost have none beside another.
bool runs_two_as_one(const Strategy& s) {
  const core::workload::ScheduleType& type = core::workload::schedule_type(s.schedule);
  if (type.asks_costs) return false;
  for (const core::workload::Schedule& order : type.orders(s.pipeline()))
    for (const core::workload::Slot& slot : order)
      if (slot.beside_next) return true;
  return false;
}

bool makes_some_again(const Strategy& s) {
  return s.recompute != Recompute::none || s.recompute_modules != 0;
}

bool fits_light_ends(std::int64_t layers, std::int64_t sections) {
  return sections > 1 && (layers + 2) % sections == 0;
}

/// As many in each as fit evenly, and some are left for the last.
bool fits_light_last(std::int64_t layers, std::int64_t sections) {
  return (sections - 1) * ((layers + sections - 1) / sections) < layers;
}

/// What of the splits would do for sections that layers do not divide over.
std::string other_splits(std::int64_t layers, std::int64_t sections) {
  const std::int64_t missing = (sections - layers % sections) % sections;
  std::string text = fmt::format("set strategy.empty_layers: {}", missing);
  if (fits_light_ends(layers, sections)) text += ", or strategy.split: light_ends";
  if (fits_light_last(layers, sections)) text += ", or strategy.split: light_last";
  return text;
}

}  // namespace

std::vector<Rule> section_rules() {
  return {
      rule("layers_by_stages", "strategy.pp",
           "layers must divide over the sections, of which there are pp x virtual_stages (dualpipe: pp)",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             const std::int64_t layers = w.configuration.model.layers, sections = s.sections().count();
             if (!s.section_layers.empty()) return std::nullopt;  // listed_layers looks at them
             if (s.split == Split::even && (layers + s.empty_layers) % sections == 0) return std::nullopt;
             if (s.split == Split::light_ends && fits_light_ends(layers, sections)) return std::nullopt;
             if (s.split == Split::light_last && fits_light_last(layers, sections)) return std::nullopt;
             return fmt::format("layers {}, sections {}; {}", layers, sections, other_splits(layers, sections));
           }),
      rule("listed_layers", "strategy.section_layers",
           "section_layers lists every section (there are pp x virtual_stages, dualpipe: pp), at least one layer in "
           "each but the first and the last, all layers of the model together, and goes with split even and no "
           "empty_layers",
           [](const World& w) -> Broken {
             const Strategy& s = w.configuration.strategy;
             const auto& listed = s.section_layers;
             if (listed.empty()) return std::nullopt;
             const std::int64_t sections = s.sections().count(), layers = w.configuration.model.layers;
             const std::int64_t sum = std::accumulate(listed.begin(), listed.end(), std::int64_t{0});
             bool inside = true;
             for (std::size_t i = 1; i + 1 < listed.size(); ++i) inside = inside && listed[i] > 0;
             if (static_cast<std::int64_t>(listed.size()) == sections && sum == layers && inside &&
                 s.split == Split::even && s.empty_layers == 0)
               return std::nullopt;
             return fmt::format("{} listed for {} sections, {} layers of {}, empty_layers {}", listed.size(), sections,
                                sum, layers, s.empty_layers);
           }),
      rule("empty_layers_fit", "strategy.empty_layers",
           "empty_layers go with split even, and no section but the last may have nothing else",
           [](const World& w) -> Broken {
             const Strategy& s = w.configuration.strategy;
             if (s.empty_layers == 0) return std::nullopt;
             const std::int64_t sections = s.sections().count(), layers = w.configuration.model.layers;
             const std::int64_t each = (layers + s.empty_layers) / sections;
             if (s.split == Split::even && sections > 1 && layers > (sections - 2) * each) return std::nullopt;
             return fmt::format("layers {}, empty_layers {}, sections {}", layers, s.empty_layers, sections);
           }),
  };
}

std::vector<Rule> activation_rules() {
  return {
      rule("recompute_modules_beside", "strategy.recompute_modules",
           "recompute_modules need recompute none or selective: full makes everything again",
           [](const World& w) -> Broken {
             const Strategy& s = w.configuration.strategy;
             if (s.recompute_modules == 0 || s.recompute != Recompute::full) return std::nullopt;
             return "recompute full";
           }),
      rule("recompute_modules_are_there", "strategy.recompute_modules",
           "moe_act and moe need experts, mlp and mlp_act layers without, shared_experts a shared_ffn_hidden, "
           "mla_up_proj attention latent",
           [](const World& w) -> Broken {
             return absent(w.configuration.strategy.recompute_modules, core::workload::recompute_module_names(),
                           again::moe_act | again::moe, again::mlp | again::mlp_act, again::shared_experts,
                           again::mla_up_proj, w.configuration.model);
           }),
      rule("recompute_where", "strategy.recompute_layers",
           "recompute_layers and recompute_stages (at most pp) need recompute or recompute_modules",
           [](const World& w) -> Broken {
             const Strategy& s = w.configuration.strategy;
             if (s.recompute_layers == 0 && s.recompute_stages == 0) return std::nullopt;
             if (makes_some_again(s) && s.recompute_stages <= s.pp) return std::nullopt;
             return fmt::format("recompute_layers {}, recompute_stages {}, pp {}", s.recompute_layers,
                                s.recompute_stages, s.pp);
           }),
      rule("offload_modules_are_there", "strategy.offload_modules",
           "expert_fc1, moe_act and expert_fc2 need experts, mlp_fc1, mlp_act and mlp_fc2 layers without",
           [](const World& w) -> Broken {
             return absent(w.configuration.strategy.offload_modules, core::workload::offload_module_names(),
                           away::expert_fc1 | away::moe_act | away::expert_fc2,
                           away::mlp_fc1 | away::mlp_act | away::mlp_fc2, 0, 0, w.configuration.model);
           }),
      rule("offload_where", "strategy.offload_layers",
           "offload_layers and offload_stages (at most pp) need offload_modules",
           [](const World& w) -> Broken {
             const Strategy& s = w.configuration.strategy;
             if (s.offload_layers == 0 && s.offload_stages == 0) return std::nullopt;
             if (s.offload_modules != 0 && s.offload_stages <= s.pp) return std::nullopt;
             return fmt::format("offload_layers {}, offload_stages {}, pp {}", s.offload_layers, s.offload_stages,
                                s.pp);
           }),
      rule("offload_alone", "strategy.offload_modules",
           "offload_modules need passes that run one after the other: no overlap_experts, and no schedule that runs "
           "two as one, as dualpipe and dualpipev do",
           [](const World& w) -> Broken {
             const Strategy& s = w.configuration.strategy;
             if (s.offload_modules == 0 || (!s.stack.overlap_experts && !runs_two_as_one(s))) return std::nullopt;
             return fmt::format("schedule {}, overlap_experts {}", core::workload::schedule_type(s.schedule).name,
                                s.stack.overlap_experts);
           }),
  };
}

}  // namespace manyworlds::experiments
