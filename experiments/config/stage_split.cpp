#include "experiments/config/stage_split.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "core/base/error.hpp"
#include "core/step/layout/layer_split.hpp"
#include "experiments/key_contents/named_tables.hpp"

namespace manyworlds::experiments {
namespace {

using core::step::Configuration;
using core::workload::LayerSplit;
using core::workload::Strategy;

/// Returns whether every group of ranks has some, each its micro-batches.
bool has_ranks(const Strategy& strategy) {
  if (strategy.dp == 0 || strategy.chunk_micro_batches() == 0 || strategy.expert_replicas() == 0) return false;
  return strategy.zero_groups() > 0 && strategy.shards() > 0 && strategy.expert_shards() > 0;
}

/// Returns whether stages can be weighed, as far as no size has to divide: there are models and ranks, and it is known
/// what every stage recomputes.
bool is_whole(const ExperimentConfig& config) {
  const Strategy& strategy = config.configuration.strategy;
  const auto& recomputed = strategy.stage_recompute_layers;
  return config.architecture_error.empty() && !config.configuration.model.teacher && config.routing_error.empty() &&
         !config.configuration.programs && has_ranks(strategy) &&
         (recomputed.empty() || std::ssize(recomputed) == strategy.stages().count());
}

/// Returns the configuration with the kernel times that the settings name, which kernels of a stage take.
Configuration with_measured_times(const ExperimentConfig& config, const Settings& settings) {
  Configuration configuration = config.configuration;
  if (config.has_measured_kernels && config.inputs)
    configuration.gpu.measured = measured_times(settings, *config.inputs);
  return configuration;
}

}  // namespace

void list_split_layers(ExperimentConfig& config, const Settings& settings) {
  Strategy& strategy = config.configuration.strategy;
  if (!core::workload::is_weighed(strategy.split) || !strategy.stage_layers.empty() || strategy.empty_layers > 0)
    return;
  if (!is_whole(config) || !core::step::why_no_split(config.configuration).empty()) return;
  try {
    strategy.stage_layers = core::step::split_layers(with_measured_times(config, settings));
    strategy.split = LayerSplit::even;
  } catch (const core::InternalError&) {
    // Some size does not divide over ranks, which is for a rule of its own to say.
  }
}

std::string split_text(const ExperimentConfig& config, const Settings& settings) {
  const std::string split = settings.text("strategy.split");
  const std::vector<std::int64_t>& layers = config.configuration.strategy.stage_layers;
  if (layers.empty() || (split != "by_parameters" && split != "by_time" && split != "by_memory")) return "";
  return fmt::format("{}: layers {}", split, fmt::join(layers, ", "));
}

}  // namespace manyworlds::experiments
