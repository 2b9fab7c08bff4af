#include "experiments/analysis/uncertainty.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/workload/model/architecture.hpp"
#include "experiments/catalog/calibration.hpp"
#include "experiments/measured/tables.hpp"

namespace manyworlds::experiments {
namespace {

using measured::Residuals;

constexpr double kOtherGpuWeight = 0.5;

/// Values and their weights.
using Weighted = std::vector<std::pair<double, double>>;

void add(Weighted& to, const std::vector<double>& values, double weight) {
  for (const double value : values) to.emplace_back(value, weight / static_cast<double>(values.size()));
}

/// Returns the smallest value with `share` of the weight at or below it.
double quantile(Weighted values, double share) {
  std::sort(values.begin(), values.end());
  double total_weight = 0, weight_so_far = 0;
  for (const auto& [value, weight] : values) total_weight += weight;
  for (const auto& [value, weight] : values)
    if ((weight_so_far += weight) >= share * total_weight * (1 - 1e-12)) return value;
  return 0;
}

/// Evidence for a layout: each family with the same GPU counts as one, each of other GPUs as half.
struct ResidualFamilies {
  std::vector<const Residuals*> same_gpu, other_gpus;

  Weighted values(std::vector<double> Residuals::*member) const {
    Weighted result;
    for (const Residuals* one : same_gpu) add(result, one->*member, 1);
    for (const Residuals* one : other_gpus) add(result, one->*member, kOtherGpuWeight);
    return result;
  }
};

/// Return the residuals below and above which a tenth of the measurements of one more family is to be expected, of
/// which nothing is known: it counts as one, half of it below all others and half above. The result is not beyond what
/// was measured (Lee, Barber and Willett 2023, arXiv 2306.06342, section 3).
std::pair<double, double> bounds_of(Weighted values, double coverage) {
  if (values.empty()) return {0, 0};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double low = least->first, high = most->first;
  constexpr double kBeyond = std::numeric_limits<double>::infinity();
  values.insert(values.end(), {{-kBeyond, 0.5}, {kBeyond, 0.5}});
  return {std::max(low, quantile(values, (1 - coverage) / 2)), std::min(high, quantile(values, (1 + coverage) / 2))};
}

/// Return the bound 1 + residual, further from 1 by `widening` but on the same side of 1.
double widened_high(double residual, double widening) {
  return 1 + widening * std::max(0.0, residual);
}
double widened_low(double residual, double widening) {
  return 1 / (1 + widening * std::max(0.0, 1 / (1 + residual) - 1));
}

/// Returns the types of a model's parts that no step of the published runs has, joined by commas.
std::string unmeasured_parts(const core::workload::Model& model) {
  if (!model.architecture) return "";
  std::set<std::string> types;
  for (const core::workload::Block& block : model.architecture->blocks)
    for (const core::workload::Branch& branch : block.branches) types.insert(branch.type);
  for (const char* known : {"attention", "mlp", "experts"}) types.erase(known);
  return fmt::format("{}", fmt::join(types, ", "));
}

std::string families_text(std::size_t families) {
  return fmt::format("{} {}", families, families == 1 ? "family" : "families");
}

}  // namespace

std::string layout_kind(const core::step::Configuration& configuration) {
  if (configuration.model.has_experts()) return "experts";
  return configuration.strategy.zero == 3 ? "sharded" : "dense";
}

std::string chip_of(const Catalog& catalog, const std::string& gpu) {
  const auto found = catalog.entries("gpus").find(gpu);
  return found != catalog.entries("gpus").end() && found->second.same_chip ? found->second.constants_of : gpu;
}

Uncertainty::Uncertainty(std::vector<measured::Residuals> residuals, const Catalog& catalog) : catalog_(catalog) {
  for (Residuals& one : residuals)
    (one.kind == measured::kNetworkKind ? network_residuals_ : residuals_).push_back(std::move(one));
}

Uncertainty Uncertainty::compiled() {
  return {measured::read_residuals(import::parse_csv(measured::compiled_table("residuals"), "residuals.csv")),
          Catalog()};
}

/// Returns whether all fitted constants have the values of the catalog.
bool Uncertainty::uses_catalog_constants(const Settings& settings, const std::string& gpu) const {
  const auto entry = catalog_.entries("gpus").find(gpu);
  if (entry == catalog_.entries("gpus").end()) return false;
  const auto& figures = entry->second.values;
  return std::all_of(figures.begin(), figures.end(), [&](const auto& one) {
    const auto& [name, sourced] = one;
    const auto set = settings.find("cluster.gpu." + name);
    return sourced.certainty != "fitted" || (set != settings.end() && set->second == sourced.value);
  });
}

/// What an interval is based on.
struct Uncertainty::Evidence {
  ResidualFamilies families;
  Interval interval;  // without its bounds
  double widening = 1;
};

Uncertainty::Evidence Uncertainty::evidence_of(const Settings& settings, const ExperimentConfig& config) const {
  const std::string kind = layout_kind(config.configuration), gpu = settings.text("cluster.gpu.name");
  const std::string chip = chip_of(catalog_, gpu);
  Evidence evidence;
  ResidualFamilies& families = evidence.families;
  for (const Residuals& one : residuals_)
    if (one.kind == kind) (one.gpu == chip ? families.same_gpu : families.other_gpus).push_back(&one);
  Interval& result = evidence.interval;
  result.chip = chip;
  result.kind = kind;
  result.measured = !families.same_gpu.empty();
  std::string reasons;
  if (!families.same_gpu.empty()) {
    result.basis = fmt::format("{} on {}: {}", kind, chip, families_text(families.same_gpu.size()));
    if (!families.other_gpus.empty())
      result.basis += fmt::format(", {} of other GPUs at half weight", families.other_gpus.size());
    if (!uses_catalog_constants(settings, gpu))
      reasons = "constants of its own";
    else if (config.configuration.collectives.protocol != core::collective::Protocol::calibrated &&
             config.cluster.gpus() > 1)
      reasons = "collectives without a measured library";
  } else if (!families.other_gpus.empty()) {
    result.basis = fmt::format("{} on other GPUs: {}", kind, families_text(families.other_gpus.size()));
    reasons = gpu.empty() ? "a GPU of its own" : "no such step of " + gpu;
  } else {
    for (const Residuals& one : residuals_) families.other_gpus.push_back(&one);
    result.basis = fmt::format("all that was measured: {}", families_text(families.other_gpus.size()));
    reasons = "none that is " + kind;
  }
  const auto add_reason = [&](const std::string& reason) { reasons += (reasons.empty() ? "" : ", ") + reason; };
  if (!config.machines.empty()) add_reason("machines of several kinds");
  if (const std::string parts = unmeasured_parts(config.configuration.model); !parts.empty())
    add_reason("no published step has " + parts);
  evidence.widening = reasons.empty() ? 1 : kWidening;
  if (!reasons.empty()) result.basis += fmt::format("; {} times as wide: {}", kWidening, reasons);
  return evidence;
}

Interval Uncertainty::of(const Settings& settings, const ExperimentConfig& config) const {
  const Evidence evidence = evidence_of(settings, config);
  const auto& [families, known, widening] = evidence;
  Interval result = known;
  const auto [low, high] = bounds_of(families.values(&Residuals::steps), kCoverage);
  result.low = widened_low(low, widening);
  result.high = widened_high(high, widening);
  // Few families compare layouts; if none of this kind does, all families are used.
  Weighted pairs = families.values(&Residuals::pair_errors);
  const bool borrowed = pairs.empty();
  if (borrowed)
    for (const Residuals& one : residuals_) add(pairs, one.pair_errors, 1);
  result.distinguishable_ratio = widened_high(quantile(pairs, kCoverage), borrowed ? kWidening : widening);
  ResidualFamilies networks;
  for (const Residuals& one : network_residuals_)
    (one.gpu == result.chip ? networks.same_gpu : networks.other_gpus).push_back(&one);
  if (const Weighted ratios = networks.values(&Residuals::pair_errors); !ratios.empty())
    result.network_ratio =
        widened_high(quantile(ratios, kCoverage), networks.same_gpu.empty() ? std::max(widening, kWidening) : widening);
  return result;
}

Interval Uncertainty::with_guesses(const Settings& settings, const ExperimentConfig& config) const {
  Interval result = of(settings, config);
  if (result.measured) return result;
  result.guesses = guessed_time(settings, config, catalog_);
  result.low *= result.guesses.low;
  result.high *= result.guesses.high;
  return result;
}

double Uncertainty::share_below(double ratio, const Settings& settings, const ExperimentConfig& config) const {
  const Evidence evidence = evidence_of(settings, config);
  const GuessedTime guesses = evidence.interval.measured ? GuessedTime() : guessed_time(settings, config, catalog_);
  // The residual whose bound would be just there.
  const double residual = ratio >= 1 ? std::max(ratio / guesses.high - 1, 0.0) / evidence.widening
                                     : 1 / (1 + std::max(guesses.low / ratio - 1, 0.0) / evidence.widening) - 1;
  double below = 0.5, total = 1;  // the new family itself, half of it below everything and half above
  for (const auto& [value, weight] : evidence.families.values(&Residuals::steps)) {
    total += weight;
    if (value <= residual) below += weight;
  }
  return below / total;
}

Uncertainty::Scatter Uncertainty::scatter_within_families(const Settings& settings,
                                                          const ExperimentConfig& config) const {
  const Evidence evidence = evidence_of(settings, config);
  Weighted deviations;
  const auto collect = [&](const std::vector<const Residuals*>& families, double weight) {
    for (const Residuals* one : families) {
      if (one->steps.size() < 2) continue;
      double sum = 0, squares = 0;
      for (const double residual : one->steps) sum += std::log1p(residual);
      const double mean = sum / static_cast<double>(one->steps.size());
      for (const double residual : one->steps) squares += (std::log1p(residual) - mean) * (std::log1p(residual) - mean);
      deviations.emplace_back(std::sqrt(squares / static_cast<double>(one->steps.size() - 1)), weight);
    }
  };
  collect(evidence.families.same_gpu, 1);
  collect(evidence.families.other_gpus, kOtherGpuWeight);
  return {quantile(deviations, 0.5), deviations.size()};
}

}  // namespace manyworlds::experiments
