// Pairs of low rank that are merged into the weights beside which they were trained, W + B A (Hu et al. 2021, LoRA,
// section 4.2), before a model scores or generates; weights in 4 bits are expanded to 16 for that.
#pragma once

#include "core/workload/model/model.hpp"
#include "experiments/phase_files/phase_settings.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::experiments::phases {

/// Adds the settings of the same model without the pairs that `settings` give all of it, if they do.
void merge_pairs(const Settings& settings, DerivedSettings& derived);

/// Returns the model of an experiment with such pairs merged.
core::workload::Model merged_model(const Experiment& experiment);

}  // namespace manyworlds::experiments::phases
