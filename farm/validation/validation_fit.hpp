// Constants of GPUs fitted to measured steps. Closed forms stand in for packets while constants are tried; each row's
// is scaled by what packets said of it over what the closed form said, so that only changes are taken from it.
#pragma once

#include <string>
#include <vector>

#include "experiments/analysis/fit.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/settings/catalog.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

/// Constants that the rows of a family are to be predicted with; those of an empty family are for all.
struct FamilyConstants {
  std::string family;
  std::vector<experiments::fitting::Constant> constants;
};

/// The constants of GPUs that `steps` rest on, fitted to all rows of `compared` but those of the family `without`
/// (empty: to all), which were predicted with those that `steps` hold. Families count by the square root of their
/// weight; rows kept apart do not.
FamilyConstants fit_constants(const std::vector<experiments::measured::TrainingStep>& steps,
                              const std::vector<Compared>& compared, const experiments::Catalog& catalog,
                              const std::string& without = {});
/// For each family those fitted without it.
std::vector<FamilyConstants> fit_without_each(const std::vector<experiments::measured::TrainingStep>& steps,
                                              const std::vector<Compared>& compared,
                                              const experiments::Catalog& catalog);

/// The steps of those families, which take constants from there in the place of the catalog's.
std::vector<experiments::measured::TrainingStep> with_constants(
    const std::vector<experiments::measured::TrainingStep>& steps, const std::vector<FamilyConstants>& constants,
    const experiments::Catalog& catalog);

/// What `compared`, predicted as `steps` have it, is with `constants`, each family with its own: by the ratio
/// of closed forms, without simulating again.
Comparison by_proportion(const std::vector<experiments::measured::TrainingStep>& steps, const Comparison& compared,
                         const std::vector<FamilyConstants>& constants, const experiments::Catalog& catalog);

/// As a table with the columns family, gpu, constant and value.
std::string constants_table(const std::vector<FamilyConstants>& constants);
/// Throws InputError, with file and line, for what is no constant of a GPU in the catalog.
std::vector<FamilyConstants> read_constants(const std::string& text, const std::string& file,
                                            const experiments::Catalog& catalog);

}  // namespace manyworlds::farm
