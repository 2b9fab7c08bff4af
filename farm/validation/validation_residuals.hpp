// What measured steps teach about how sure predictions are: residuals of families and of pairs of layouts, as
// experiments/measured/residuals.csv holds them.
#pragma once

#include <vector>

#include "experiments/measured/residuals.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/settings/catalog.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

/// Of the rows that are not apart, by chip, kind and family; `compared` should be of predictions that did not see a
/// row's family.
std::vector<experiments::measured::Residuals> residuals_of(
    const std::vector<experiments::measured::TrainingStep>& steps, const Comparison& compared,
    const experiments::Catalog& catalog);

}  // namespace manyworlds::farm
