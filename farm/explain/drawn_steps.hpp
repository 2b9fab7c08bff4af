// Steps whose replicas draw documents of their own, beside the step in which all have their mean.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/experiment.hpp"

namespace manyworlds::farm {

/// How much longer drawn steps are than the balanced one, as shares of it, ascending: all without contention, at
/// fidelity analytic.
struct DrawnSteps {
  std::vector<double> longer;

  double mean() const;
  /// Returns the share that so much of the draws are not above.
  double quantile(double share) const;
};

/// Simulates 16 draws of an experiment's step; nothing if its samples have no documents, or its step has no draws.
std::optional<DrawnSteps> drawn_steps(const experiments::Experiment& experiment);

/// Says on a line what they are, or that there are none.
std::string drawn_steps_text(const std::optional<DrawnSteps>& drawn);
nlohmann::ordered_json drawn_steps_json(const DrawnSteps& drawn);

}  // namespace manyworlds::farm
