// Fits the constants of GPUs to measured steps by closed forms: least squares of the logarithm of predicted over
// measured time, where rows far off count less (Huber's weights), and every constant is held loosely to a general
// value, so that those which the rows do not tell apart stay sensible.
#pragma once

#include <string>
#include <vector>

#include "core/step/estimate/closed_form.hpp"
#include "experiments/config/world.hpp"

namespace manyworlds::experiments::fitting {

/// Inside a node to its switch and on; between nodes NIC, leaf, spine, leaf, NIC.
core::step::Links links_of(const World& world);

/// How long a step of `world` takes by closed forms.
double closed_form_s(const World& world);

/// A measured step as closed forms take it.
struct FitRow {
  core::step::Configuration configuration;  // without its graph
  core::step::Links links;
  std::string gpu;  // whose constants it uses
  double measured_s = 0;
  double weight = 1;
};

struct Constant {
  std::string gpu, key;  // a fitted figure: an option of compute::Gpu
  double value = 0;
};

/// The constants of `start` (one row each), fitted to `rows`. Rows of GPUs without a constant there only cost time.
/// Deterministic: the same rows in the same order give the same constants.
std::vector<Constant> fit(const std::vector<FitRow>& rows, std::vector<Constant> start);

/// The time that closed forms give with these constants.
double predict_s(const FitRow& row, const std::vector<Constant>& constants);

}  // namespace manyworlds::experiments::fitting
