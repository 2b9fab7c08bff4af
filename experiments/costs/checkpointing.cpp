// A renewal argument: failures that only storage can recover (share q of rate 1 / M) divide the run into cycles that
// begin with a restart from storage. docs/model/costs.md has the derivation.
#include "experiments/costs/checkpointing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace manyworlds::experiments {
namespace {

constexpr std::int64_t kMaxPersistEvery = 1 << 20;

/// e^x - 1 for x >= 0, bit-identical on every machine, unlike libm's expm1().
double exp_minus_one(double x) {
  int doublings = 0;
  for (; x > 0.0625 && doublings < 64; ++doublings) x /= 2;
  double sum = 0;
  for (int n = 12; n > 0; --n) sum = (sum + 1) * x / n;
  for (; doublings > 0; --doublings) sum *= sum + 2;
  return sum;
}

/// 1 - e^-x for x >= 0.
double one_minus_exp(double x) {
  const double exp_less_one = exp_minus_one(x);
  return std::isinf(exp_less_one) ? 1 : exp_less_one / (1 + exp_less_one);
}

/// (1 + x)^n - 1 for x >= 0.
double compound_minus_one(double x, std::int64_t n) {
  double result = 0;
  for (; n > 0; n /= 2, x *= x + 2)
    if (n % 2 == 1) result += x * (1 + result);
  return result;
}

/// Returns the expected share of time spent on work that no failure undoes.
double goodput(const Checkpoints& c, const Failures& f, double interval_s) {
  const double q = f.storage_restart_share, segment = exp_minus_one((interval_s + c.block_s) / f.mtbf_s);
  if (q == 0) return interval_s / f.mtbf_s / (segment * (1 + exp_minus_one(f.memory_restart_s / f.mtbf_s)));
  // Probabilities that a restart ends before a failure that needs storage; other failures only begin it again.
  const double from_memory = 1 / (1 + q * exp_minus_one(f.memory_restart_s / f.mtbf_s));
  const double from_storage = 1 / (1 + q * exp_minus_one(f.restart_s / f.mtbf_s));
  // The next checkpoint is taken before memory is lost with probability 1 / (1 + odds_against).
  const double odds_against = segment * (1 - (1 - q) * from_memory);
  const auto per_persist = static_cast<double>(c.checkpoints_per_persist);
  return q * per_persist * interval_s / f.mtbf_s * from_storage /
         ((1 + exp_minus_one(q * c.persist_s / f.mtbf_s)) *
          compound_minus_one(odds_against, c.checkpoints_per_persist));
}

double min_interval_s(const Checkpoints& c) {
  const double keeps_up_s = c.persist_s / static_cast<double>(c.checkpoints_per_persist) - c.block_s;
  return std::max(keeps_up_s, 1e-6 * (c.block_s + c.persist_s + 1e-6));  // otherwise nearly 0, since 0 has no logarithm
}

/// Goodput has a single maximum. The logarithmic range is halved with square roots, which are exact.
double best_interval_s(const Checkpoints& c, const Failures& f) {
  const double minimum_s = min_interval_s(c);
  double low = minimum_s, high = std::max(minimum_s, 4 * young_interval_s(c.block_s + minimum_s, f.mtbf_s));
  // The maximum is next to the best of three inner points, so each step discards half of the range.
  while (high > low * (1 + 1e-6)) {
    const double middle = std::sqrt(low * high), left = std::sqrt(low * middle), right = std::sqrt(middle * high);
    const double at_left = goodput(c, f, left), at_middle = goodput(c, f, middle), at_right = goodput(c, f, right);
    if (at_left >= at_middle && at_left >= at_right) {
      high = middle;
    } else if (at_right > at_middle) {
      low = middle;
    } else {
      low = left;
      high = right;
    }
  }
  return std::sqrt(low * high);
}

}  // namespace

RunShares run_shares(const Checkpoints& c, const Failures& f, double interval_s) {
  MANYWORLDS_CHECK(f.mtbf_s > 0 && interval_s > 0 && c.checkpoints_per_persist > 0,
                   "M {} s, interval {} s, checkpoints per persist {}", f.mtbf_s, interval_s,
                   c.checkpoints_per_persist);
  const double q = f.storage_restart_share, restart_failure_share = one_minus_exp(f.restart_s / f.mtbf_s);
  // Share of restarts that read from storage. A failure during one begins it again, whatever it leaves in memory.
  const double storage_share = q == 0 ? 0 : q / (1 - (1 - q) * restart_failure_share);
  RunShares shares;
  shares.restarting =
      storage_share * restart_failure_share + (1 - storage_share) * one_minus_exp(f.memory_restart_s / f.mtbf_s);
  const double segment = one_minus_exp((interval_s + c.block_s) / f.mtbf_s);
  const double blocked = one_minus_exp(c.block_s / f.mtbf_s) * (1 - one_minus_exp(interval_s / f.mtbf_s)) / segment;
  shares.checkpointing = (1 - shares.restarting) * blocked;
  shares.goodput = goodput(c, f, interval_s);
  shares.rework = std::max(0.0, 1 - shares.restarting - shares.checkpointing - shares.goodput);
  return shares;
}

double first_order_goodput(const Checkpoints& c, const Failures& f, double interval_s) {
  const double q = f.storage_restart_share, segment = interval_s + c.block_s;
  const double restart = q * f.restart_s + (1 - q) * f.memory_restart_s;
  const double persist_lag_s = c.persist_s + static_cast<double>(c.checkpoints_per_persist - 1) / 2 * segment;
  const double share = (1 - (restart + segment / 2 + q * persist_lag_s) / f.mtbf_s) / (1 + c.block_s / interval_s);
  return share >= 0 ? share : std::numeric_limits<double>::quiet_NaN();
}

double young_interval_s(double block_s, double mtbf_s) {
  return std::sqrt(2 * block_s * mtbf_s);
}

CheckpointPlan best_checkpoint_plan(Checkpoints checkpoints, const Failures& failures,
                                    std::optional<double> interval_s) {
  const bool chooses_persist = checkpoints.checkpoints_per_persist == 0;
  if (interval_s) {
    if (chooses_persist) {
      const double keeps_up = std::ceil(checkpoints.persist_s / (*interval_s + checkpoints.block_s));
      checkpoints.checkpoints_per_persist = std::max<std::int64_t>(1, static_cast<std::int64_t>(keeps_up));
    }
    return {checkpoints, *interval_s, run_shares(checkpoints, failures, *interval_s)};
  }
  const auto plan_with = [&](std::int64_t checkpoints_per_persist) {
    CheckpointPlan plan{checkpoints, 0, {}};
    plan.checkpoints.checkpoints_per_persist = checkpoints_per_persist;
    plan.interval_s = best_interval_s(plan.checkpoints, failures);
    plan.shares = run_shares(plan.checkpoints, failures, plan.interval_s);
    return plan;
  };
  if (!chooses_persist) return plan_with(checkpoints.checkpoints_per_persist);
  // More checkpoints in memory per persisted one raise goodput while storage keeps the interval long, and lower it
  // afterwards.
  CheckpointPlan best = plan_with(1);
  const auto improves = [&](std::int64_t checkpoints_per_persist) {
    const CheckpointPlan other = plan_with(checkpoints_per_persist);
    if (other.shares.goodput <= best.shares.goodput) return false;
    best = other;
    return true;
  };
  while (best.checkpoints.checkpoints_per_persist < kMaxPersistEvery &&
         improves(2 * best.checkpoints.checkpoints_per_persist)) {
  }
  for (std::int64_t stride = best.checkpoints.checkpoints_per_persist / 2; stride > 0; stride /= 2)
    if (!improves(best.checkpoints.checkpoints_per_persist + stride))
      improves(best.checkpoints.checkpoints_per_persist - stride);
  return best;
}

}  // namespace manyworlds::experiments
