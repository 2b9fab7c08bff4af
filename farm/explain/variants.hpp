// An experiment and variants of it, of which each differs in one thing.
#pragma once

#include <string>

#include "experiments/sweep/experiment.hpp"

namespace manyworlds::farm {

/// What tells variants apart: a column of the results, and what it says, for people.
struct VariantColumn {
  std::string name, description;
};

/// Returns a sweep of the experiment alone, with an empty value in the column, for variants to be added. It is ranked
/// by step time.
experiments::Sweep variants_of(const experiments::Experiment& experiment, const std::string& name,
                               const VariantColumn& column, const std::string& description);

/// Adds an experiment that differs as `label` says; returns its index.
std::size_t add_variant(experiments::Sweep& sweep, experiments::Experiment experiment, const std::string& label);

}  // namespace manyworlds::farm
