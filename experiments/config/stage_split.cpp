#include "experiments/config/stage_split.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.hpp"
#include "core/step/layout/layer_split.hpp"
#include "experiments/config/inputs.hpp"

namespace manyworlds::experiments {
namespace {

using core::step::Configuration;
using core::workload::LayerSplit;
using core::workload::Strategy;

/// Returns whether there are ranks to ask about, and models for them.
bool has_ranks(const ExperimentConfig& config) {
  const Strategy& strategy = config.configuration.strategy;
  return strategy.dp > 0 && strategy.micro_batches() > 0 && config.architecture_error.empty() &&
         config.routing_error.empty() && !config.configuration.programs;
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
  if (!core::step::is_weighed(strategy.split) || !strategy.stage_layers.empty() || strategy.empty_layers > 0) return;
  if (!has_ranks(config) || !core::step::why_no_split(config.configuration).empty()) return;
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
