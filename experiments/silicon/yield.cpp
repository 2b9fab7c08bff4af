#include "experiments/silicon/yield.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace manyworlds::experiments::silicon {
namespace {

constexpr double kWafer_mm = 300, kMm2PerCm2 = 100;

}  // namespace

double dies_per_wafer(double die_mm2) {
  const double whole = std::numbers::pi * (kWafer_mm / 2) * (kWafer_mm / 2) / die_mm2;
  return std::max(0.0, whole - std::numbers::pi * kWafer_mm / std::sqrt(2 * die_mm2));
}

double yield_of(double mm2, const Process& process) {
  const double defects = mm2 / kMm2PerCm2 * process.defects_per_cm2;
  if (defects <= 0) return 1;
  if (process.yield == YieldModel::poisson) return std::exp(-defects);
  if (process.yield == YieldModel::murphy) {
    const double mean = -std::expm1(-defects) / defects;
    return mean * mean;
  }
  double power = 1;
  for (std::int64_t i = 0; i < process.cluster; ++i) power *= 1 + defects / static_cast<double>(process.cluster);
  return 1 / power;
}

double die_yield(const Chip& chip, const DieArea& area, const Process& process) {
  const double one = yield_of((area.sms + area.network) / static_cast<double>(chip.sms), process);
  const double others = yield_of(area.l2 + area.hbm + area.links + area.rest, process);
  const std::int64_t spares = chip.sms - chip.used_sms();
  // The binomial terms from no bad SM upwards, each from the one before it.
  double term = 1, sum = 0;
  for (std::int64_t i = 0; i < chip.sms; ++i) term *= one;
  for (std::int64_t bad = 0; bad <= spares; ++bad) {
    sum += term;
    term *= static_cast<double>(chip.sms - bad) / static_cast<double>(bad + 1) * (1 - one) / one;
  }
  return others * std::min(1.0, sum);
}

}  // namespace manyworlds::experiments::silicon
