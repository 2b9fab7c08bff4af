// The spread of predictions, learned from measured steps: residuals of families and of pairs of layouts, as stored in
// experiments/measured/residuals.csv.
#pragma once

#include <vector>

#include "experiments/measured/residuals.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/settings/catalog.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

/// Returns the residuals of the rows that are not excluded, by chip, layout kind and family. `compared` should be
/// predicted with constants that were not fitted to a row's own family.
std::vector<experiments::measured::Residuals> residuals_of(
    const std::vector<experiments::measured::TrainingStep>& steps, const Comparison& compared,
    const experiments::Catalog& catalog);

}  // namespace manyworlds::farm
