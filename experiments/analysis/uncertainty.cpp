#include "experiments/analysis/uncertainty.hpp"

#include <algorithm>

#include "experiments/measured/tables.hpp"
#include "experiments/settings/calibration.hpp"

namespace manyworlds::experiments {
namespace {

using measured::Residuals;

/// Values and what they weigh.
using Weighted = std::vector<std::pair<double, double>>;

void add(Weighted& to, const std::vector<double>& values, double weight) {
  for (const double value : values) to.emplace_back(value, weight / static_cast<double>(values.size()));
}

/// The least value with `share` of the weight at or below it.
double quantile(Weighted values, double share) {
  std::sort(values.begin(), values.end());
  double whole = 0, below = 0;
  for (const auto& [value, weight] : values) whole += weight;
  for (const auto& [value, weight] : values)
    if ((below += weight) >= share * whole * (1 - 1e-12)) return value;
  return 0;
}

/// Families that speak for a layout: each of `near` counts as one, all of `far` together as one more.
struct Families {
  std::vector<const Residuals*> near, far;

  Weighted values(std::vector<double> Residuals::*of) const {
    Weighted made;
    const auto count = [of](const auto& some) {
      return std::count_if(some.begin(), some.end(), [of](const Residuals* one) { return !(one->*of).empty(); });
    };
    for (const Residuals* one : near) add(made, one->*of, 1);
    for (const Residuals* one : far) add(made, one->*of, 1 / static_cast<double>(count(far)));
    return made;
  }
};

/// Further from 1 by `widening`, and on its side of 1.
double high_of(double off, double widening) {
  return 1 + widening * std::max(0.0, off);
}
double low_of(double off, double widening) {
  return 1 / (1 + widening * std::max(0.0, 1 / (1 + off) - 1));
}

std::string text_of(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? std::string() : std::get<std::string>(found->second);
}

std::string many(std::size_t families) {
  return fmt::format("{} {}", families, families == 1 ? "family" : "families");
}

}  // namespace

std::string layout_kind(const core::step::Configuration& configuration) {
  if (configuration.model.has_experts()) return "experts";
  return configuration.strategy.zero == 3 ? "sharded" : "dense";
}

std::string chip_of(const Catalog& catalog, const std::string& gpu) {
  const auto found = catalog.of("gpus").find(gpu);
  return found != catalog.of("gpus").end() && found->second.same_chip ? found->second.constants_of : gpu;
}

Uncertainty Uncertainty::compiled() {
  return {measured::read_residuals(import::parse_csv(measured::compiled_table("residuals"), "residuals.csv")),
          Catalog()};
}

/// Whether nobody changed a figure that was fitted.
bool Uncertainty::constants_are_the_catalogs(const Settings& settings, const std::string& gpu) const {
  const auto entry = catalog_.of("gpus").find(gpu);
  if (entry == catalog_.of("gpus").end()) return false;
  const auto& figures = entry->second.figures;
  return std::all_of(figures.begin(), figures.end(), [&](const auto& one) {
    const auto& [name, figure] = one;
    const auto set = settings.find("cluster.gpu." + name);
    return figure.certainty != "fitted" || (set != settings.end() && set->second == figure.value);
  });
}

Interval Uncertainty::of(const Settings& settings, const World& world) const {
  const std::string kind = layout_kind(world.configuration), gpu = text_of(settings, "cluster.gpu.name");
  const std::string chip = chip_of(catalog_, gpu);
  Families families;
  for (const Residuals& one : residuals_)
    if (one.kind == kind) (one.gpu == chip ? families.near : families.far).push_back(&one);
  Interval made;
  made.chip = chip;
  made.kind = kind;
  std::string because;
  if (!families.near.empty()) {
    made.basis = fmt::format("{} on {}: {}", kind, chip, many(families.near.size()));
    if (!families.far.empty()) made.basis += fmt::format(", {} of other GPUs as one more", families.far.size());
    if (!constants_are_the_catalogs(settings, gpu))
      because = "constants of its own";
    else if (world.configuration.collectives.protocol != core::collective::Protocol::calibrated &&
             world.cluster.gpus() > 1)
      because = "collectives without a measured library";
  } else if (!families.far.empty()) {
    made.basis = fmt::format("{} on other GPUs: {}", kind, many(families.far.size()));
    because = gpu.empty() ? "a GPU of its own" : "no such step of " + gpu;
  } else {
    for (const Residuals& one : residuals_) families.far.push_back(&one);
    made.basis = fmt::format("all that was measured: {}", many(families.far.size()));
    because = "none that is " + kind;
  }
  if (!world.machines.empty()) because += std::string(because.empty() ? "" : ", ") + "machines of several kinds";
  const double widening = because.empty() ? 1 : kWidening;
  if (!because.empty()) made.basis += fmt::format("; {} times as wide: {}", kWidening, because);
  const Weighted steps = families.values(&Residuals::steps);
  made.low = low_of(quantile(steps, (1 - kShare) / 2), widening);
  made.high = high_of(quantile(steps, (1 + kShare) / 2), widening);
  // Few families compare layouts: where none of this kind does, others have to do.
  Weighted pairs = families.values(&Residuals::pairs_off);
  const bool lent = pairs.empty();
  if (lent)
    for (const Residuals& one : residuals_) add(pairs, one.pairs_off, 1);
  made.told_apart = high_of(quantile(pairs, kShare), lent ? kWidening : widening);
  return made;
}

}  // namespace manyworlds::experiments
