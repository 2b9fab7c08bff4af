// Fits GPU constants to measured steps. A closed form replaces the packet simulation while constants are tried. Each
// row's closed form is scaled to its packet simulation, so that it only contributes relative changes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/analysis/fit.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/measured/training_steps.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

/// Constants with which to predict the rows of a family; an empty name denotes all families.
struct FamilyConstants {
  std::string family;
  std::vector<experiments::fitting::Constant> constants;
};

/// Returns the keys of what whole steps tell of a GPU and its host. Constants of kernels and of the communication
/// library have measurements of their own, and steps must not bend them.
std::span<const std::string_view> step_constants();

/// Returns the constants of the GPUs that `steps` use, fitted to the rows of `compared` except those of family
/// `without` (empty: no exception). `compared` must have been predicted with the constants in `steps`. A family counts
/// by the square root of its weight; excluded rows do not count.
FamilyConstants fit_constants(const std::vector<experiments::measured::TrainingStep>& steps,
                              const std::vector<ComparedRow>& compared, const experiments::Catalog& catalog,
                              const std::string& without = {});
/// Returns, for each family, the constants fitted without it (leave-one-family-out).
std::vector<FamilyConstants> fit_leaving_one_out(const std::vector<experiments::measured::TrainingStep>& steps,
                                                 const std::vector<ComparedRow>& compared,
                                                 const experiments::Catalog& catalog);

/// Returns the steps of the families in `constants`, with these constants in place of the catalog's.
std::vector<experiments::measured::TrainingStep> with_constants(
    const std::vector<experiments::measured::TrainingStep>& steps, const std::vector<FamilyConstants>& constants,
    const experiments::Catalog& catalog);

/// Returns `compared`, which was predicted with the constants in `steps`, rescaled to the `constants` of each family by
/// the ratio of closed forms, without a new simulation.
Comparison scale_by_closed_form(const std::vector<experiments::measured::TrainingStep>& steps,
                                const Comparison& compared, const std::vector<FamilyConstants>& constants,
                                const experiments::Catalog& catalog);

/// Returns a CSV table with the columns family, gpu, constant and value.
std::string constants_table(const std::vector<FamilyConstants>& constants);
/// Parses such a table. Throws core::InputError, with file and line, for anything but a constant of a GPU in the
/// catalog.
std::vector<FamilyConstants> read_constants(const std::string& text, const std::string& file,
                                            const experiments::Catalog& catalog);

}  // namespace manyworlds::farm
