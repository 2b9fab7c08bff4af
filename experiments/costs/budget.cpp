#include "experiments/costs/budget.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/workload/layer/layer_parameters.hpp"

namespace manyworlds::experiments {
namespace {

constexpr double kSecondsPerDay = 86'400;

/// Returns the largest share of a budget that the run uses up; NaN if a price is missing.
double used_share(const Training& training, double gpus, const RunTotals& run) {
  double share = 0;
  const auto add = [&](double budget, double used) {
    if (budget > 0) share = std::isnan(used) ? used : std::max(share, used / budget);
  };
  add(training.budget_days, run.time_s / kSecondsPerDay);
  add(training.budget_gpu_days, gpus * run.time_s / kSecondsPerDay);
  add(training.budget_usd, run.usd);  // last, so that a price that is missing is not forgotten
  return share;
}

}  // namespace

double work_within_budget(const Training& training, double gpus,
                          const std::function<RunTotals(double work_s)>& totals_of) {
  MANYWORLDS_CHECK(training.has_budget(), "no budget");
  const auto used = [&](double work_s) { return used_share(training, gpus, totals_of(work_s)); };
  const double of_a_second = used(1);
  if (std::isnan(of_a_second)) return of_a_second;
  if (std::isinf(of_a_second)) return 0;  // failures come before a restart ends
  const bool begun_again = training.fails() && training.checkpoint == CheckpointKind::none;
  double low = 0, high = 1 / of_a_second;
  if (!begun_again) return high;  // in proportion to its work; a run that is begun again takes more
  while (used(high) < 1) high *= 2;
  for (double middle = high / 2; middle > low && middle < high; middle = low + (high - low) / 2)
    (used(middle) <= 1 ? low : high) = middle;
  return low;
}

std::optional<double> parameters_of_loss(const Training& training, const core::workload::Model& model) {
  const auto all = static_cast<double>(core::workload::model_parameters(model));
  if (model.experts == 0 || training.loss_experts == LossExperts::all) return all;
  if (training.loss_experts == LossExperts::active)
    return static_cast<double>(core::workload::active_parameters(model));
  return std::nullopt;
}

}  // namespace manyworlds::experiments
