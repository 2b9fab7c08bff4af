// Layers of pipeline stages that follow from what these weigh on the machines of an experiment: the splits
// by_parameters, by_time and by_memory.
#pragma once

#include <string>

#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

/// Lists the layers of every stage in the strategy, whose split is even from then on, if the settings ask for such a
/// split. Everything else of the configuration is set, but for its fabric. The strategy stays as it is where layers are
/// listed already, where there is no such split, or where sizes do not fit: rules refuse all of these.
void list_split_layers(ExperimentConfig& config, const Settings& settings);

/// Returns such a split with its layers, as "by_time: layers 12, 13, 13, 10", for answers; empty if the settings ask
/// for none. `config` is of these settings.
std::string split_text(const ExperimentConfig& config, const Settings& settings);

}  // namespace manyworlds::experiments
