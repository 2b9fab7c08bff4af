// A renewal argument: failures after which only storage helps (share q of rate 1 / M) cut the run into cycles that
// begin with a restart from storage. docs/model.md derives what stands here.
#include "experiments/costs/checkpointing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace manyworlds::experiments {
namespace {

constexpr std::int64_t kMostTogether = 1 << 20;

/// e^x - 1 for x >= 0, the same to the last bit on every machine, which libm's is not.
double growth(double x) {
  int doublings = 0;
  for (; x > 0.0625 && doublings < 64; ++doublings) x /= 2;
  double sum = 0;
  for (int n = 12; n > 0; --n) sum = (sum + 1) * x / n;
  for (; doublings > 0; --doublings) sum *= sum + 2;
  return sum;
}

/// 1 - e^-x for x >= 0.
double decay(double x) {
  const double grown = growth(x);
  return std::isinf(grown) ? 1 : grown / (1 + grown);
}

/// (1 + x)^n - 1 for x >= 0.
double power_less_one(double x, std::int64_t n) {
  double made = 0;
  for (; n > 0; n /= 2, x *= x + 2)
    if (n % 2 == 1) made += x * (1 + made);
  return made;
}

/// Expected share of time in which work is done that lasts.
double goodput(const Checkpoints& c, const Failures& f, double interval_s) {
  const double q = f.to_storage_share, segment = growth((interval_s + c.block_s) / f.mean_s);
  if (q == 0) return interval_s / f.mean_s / (segment * (1 + growth(f.memory_restart_s / f.mean_s)));
  // A restart survives with these odds, where failures that leave memory whole only begin it again.
  const double from_memory = 1 / (1 + q * growth(f.memory_restart_s / f.mean_s));
  const double from_storage = 1 / (1 + q * growth(f.restart_s / f.mean_s));
  // Another checkpoint before memory is lost: with probability 1 / (1 + against).
  const double against = segment * (1 - (1 - q) * from_memory);
  const auto together = static_cast<double>(c.persist_every);
  return q * together * interval_s / f.mean_s * from_storage /
         ((1 + growth(q * c.persist_s / f.mean_s)) * power_less_one(against, c.persist_every));
}

double least_interval_s(const Checkpoints& c) {
  const double keeps_up_s = c.persist_s / static_cast<double>(c.persist_every) - c.block_s;
  return std::max(keeps_up_s, 1e-6 * (c.block_s + c.persist_s + 1e-6));  // else as good as 0, which has no logarithm
}

/// Goodput rises to one summit. Halves of the logarithmic range are taken by square roots, which are exact.
double best_interval_s(const Checkpoints& c, const Failures& f) {
  const double least = least_interval_s(c);
  double low = least, high = std::max(least, 4 * young_interval_s(c.block_s + least, f.mean_s));
  // The summit is beside the best of three points inside, so each step leaves half of the range.
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
  MANYWORLDS_CHECK(f.mean_s > 0 && interval_s > 0 && c.persist_every > 0, "M {} s, interval {} s, persist every {}",
                   f.mean_s, interval_s, c.persist_every);
  const double q = f.to_storage_share, cut = decay(f.restart_s / f.mean_s);
  // Of the restarts those from storage: a failure in one begins it again, whatever it leaves of memory.
  const double stored = q == 0 ? 0 : q / (1 - (1 - q) * cut);
  RunShares shares;
  shares.restarting = stored * cut + (1 - stored) * decay(f.memory_restart_s / f.mean_s);
  const double segment = decay((interval_s + c.block_s) / f.mean_s);
  const double blocked = decay(c.block_s / f.mean_s) * (1 - decay(interval_s / f.mean_s)) / segment;
  shares.checkpointing = (1 - shares.restarting) * blocked;
  shares.goodput = goodput(c, f, interval_s);
  shares.repeated = std::max(0.0, 1 - shares.restarting - shares.checkpointing - shares.goodput);
  return shares;
}

double first_order_goodput(const Checkpoints& c, const Failures& f, double interval_s) {
  const double q = f.to_storage_share, segment = interval_s + c.block_s;
  const double restart = q * f.restart_s + (1 - q) * f.memory_restart_s;
  const double behind = c.persist_s + static_cast<double>(c.persist_every - 1) / 2 * segment;
  const double share = (1 - (restart + segment / 2 + q * behind) / f.mean_s) / (1 + c.block_s / interval_s);
  return share >= 0 ? share : std::numeric_limits<double>::quiet_NaN();
}

double young_interval_s(double block_s, double mean_s) {
  return std::sqrt(2 * block_s * mean_s);
}

CheckpointPlan best_plan(Checkpoints checkpoints, const Failures& failures, std::optional<double> interval_s) {
  const bool choose = checkpoints.persist_every == 0;
  if (interval_s) {
    if (choose) {
      const double keeps_up = std::ceil(checkpoints.persist_s / (*interval_s + checkpoints.block_s));
      checkpoints.persist_every = std::max<std::int64_t>(1, static_cast<std::int64_t>(keeps_up));
    }
    return {checkpoints, *interval_s, run_shares(checkpoints, failures, *interval_s)};
  }
  const auto with = [&](std::int64_t persist_every) {
    CheckpointPlan plan{checkpoints, 0, {}};
    plan.checkpoints.persist_every = persist_every;
    plan.interval_s = best_interval_s(plan.checkpoints, failures);
    plan.shares = run_shares(plan.checkpoints, failures, plan.interval_s);
    return plan;
  };
  if (!choose) return with(checkpoints.persist_every);
  // More in memory for each in storage pays while storage is what keeps the interval long; then it costs.
  CheckpointPlan best = with(1);
  const auto improves = [&](std::int64_t persist_every) {
    const CheckpointPlan other = with(persist_every);
    if (other.shares.goodput <= best.shares.goodput) return false;
    best = other;
    return true;
  };
  while (best.checkpoints.persist_every < kMostTogether && improves(2 * best.checkpoints.persist_every)) {
  }
  for (std::int64_t by = best.checkpoints.persist_every / 2; by > 0; by /= 2)
    if (!improves(best.checkpoints.persist_every + by)) improves(best.checkpoints.persist_every - by);
  return best;
}

}  // namespace manyworlds::experiments
