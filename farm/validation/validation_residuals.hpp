// The spread of predictions, learned from measured steps: residuals of families and of pairs of layouts, as stored in
// experiments/measured/residuals.csv.
#pragma once

#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/measured/residuals.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/measured_collectives/collectives.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

/// Returns the residuals of the rows that are not excluded, by chip, layout kind and family. `compared` should be
/// predicted with constants that were not fitted to a row's own family.
std::vector<experiments::measured::Residuals> residuals_of(
    const std::vector<experiments::measured::TrainingStep>& steps, const Comparison& compared,
    const experiments::Catalog& catalog);

/// Returns the residuals of the collectives over nodes, of kLargeBytes and more, by chip and family, and those of all
/// pairs of a family: what the network of a step may be off by, and what it may be off by in comparison. `compared`
/// must be compare(collectives).
std::vector<experiments::measured::Residuals> network_residuals(
    const std::vector<experiments::measured::MeasuredCollective>& collectives, const Comparison& compared,
    const experiments::Catalog& catalog);

}  // namespace manyworlds::farm
