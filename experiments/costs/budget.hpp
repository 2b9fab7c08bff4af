// What a budget of GPU-days, money or days pays for of a training run: an alternative to its number of tokens (the
// compute-optimal model of vTrain, Bang et al., MICRO 2024, with a simulated step instead of a fixed utilisation).
#pragma once

#include <functional>
#include <optional>

#include "core/workload/model/model.hpp"
#include "experiments/costs/training.hpp"

namespace manyworlds::experiments {

/// What a training run takes with its failures and checkpoints.
struct RunTotals {
  double time_s = 0;
  double usd = 0;  // NaN if no price is known
};

/// Returns the seconds of steps, without failures and checkpoints, that the tightest budget pays for on `gpus` GPUs;
/// `totals_of` returns what so many seconds take, and grows with them. NaN if a budget is of money and there is no
/// price. Requires has_budget().
double work_within_budget(const Training& training, double gpus,
                          const std::function<RunTotals(double work_s)>& totals_of);

/// Returns the parameters of a model that the law of its loss counts; none for a model with experts unless
/// training.loss_experts says which.
std::optional<double> parameters_of_loss(const Training& training, const core::workload::Model& model);

}  // namespace manyworlds::experiments
