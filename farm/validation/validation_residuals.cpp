#include "farm/validation/validation_residuals.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.hpp"
#include "experiments/analysis/uncertainty.hpp"

namespace manyworlds::farm {
namespace {

using experiments::measured::Residuals;

/// Returns the ratio of the larger to the smaller value, minus 1.
double ratio_error(double a, double b) {
  return std::max(a / b, b / a) - 1;
}

std::vector<std::pair<double, double>> pair_deviations(const std::vector<ComparedRow>& rows) {
  std::vector<std::pair<double, double>> result;
  for (const std::vector<MeanLayout>& layouts : groups_of(rows))
    for (std::size_t a = 0; a < layouts.size(); ++a)
      for (std::size_t b = a + 1; b < layouts.size(); ++b)
        result.emplace_back(
            ratio_error(layouts[a].measured / layouts[b].measured, layouts[a].predicted / layouts[b].predicted), 1);
  return result;
}

}  // namespace

std::vector<Residuals> residuals_of(const std::vector<experiments::measured::TrainingStep>& steps,
                                    const Comparison& compared, const experiments::Catalog& catalog) {
  std::map<std::string, std::pair<std::string, std::string>> chip_and_kind;  // by id
  std::set<std::string> listed;  // models with a list of layers: their intervals follow from those of other models
  for (const auto& step : steps) {
    if (step.experiments.empty()) continue;
    const auto configuration = experiments::config_of(step.experiments.front()).configuration;
    if (configuration.model.architecture) listed.insert(step.id);
    chip_and_kind[step.id] = {experiments::chip_of(catalog, step.gpu), experiments::layout_kind(configuration)};
  }
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<ComparedRow>> groups;
  for (const ComparedRow& row : compared.rows) {
    if (row.excluded_from_family || listed.count(row.id) > 0) continue;
    const auto found = chip_and_kind.find(row.id);
    MANYWORLDS_CHECK(found != chip_and_kind.end(), "row '{}' was compared and is none of the steps", row.id);
    groups[{found->second.first, found->second.second, row.family}].push_back(row);
  }
  std::vector<Residuals> result;
  for (const auto& [key, rows] : groups) {
    std::vector<std::pair<double, double>> deviations;
    for (const ComparedRow& row : rows) deviations.emplace_back(row.measured / row.predicted - 1, row.weight);
    const auto pairs = pair_deviations(rows);
    result.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), static_cast<std::int64_t>(rows.size()),
                      static_cast<std::int64_t>(pairs.size()),
                      experiments::measured::quantile_sample(std::move(deviations)),
                      experiments::measured::quantile_sample(pairs)});
  }
  return result;
}

std::vector<Residuals> network_residuals(const std::vector<experiments::measured::MeasuredCollective>& collectives,
                                         const Comparison& compared, const experiments::Catalog& catalog) {
  std::map<std::string, std::string> chips;  // by id, of those that are meant
  for (const auto& one : collectives)
    if (one.nodes > 1 && !one.tokens && one.bytes >= experiments::measured::kLargeBytes)
      chips[one.id] = experiments::chip_of(catalog, one.gpu);
  std::map<std::pair<std::string, std::string>, std::vector<ComparedRow>> groups;
  for (const ComparedRow& row : compared.rows)
    if (const auto chip = chips.find(row.id); chip != chips.end() && !row.excluded_from_family)
      groups[{chip->second, row.family}].push_back(row);
  std::vector<Residuals> result;
  for (const auto& [key, rows] : groups) {
    std::vector<std::pair<double, double>> deviations, pairs;
    for (std::size_t a = 0; a < rows.size(); ++a) {
      deviations.emplace_back(rows[a].measured / rows[a].predicted - 1, 1);
      for (std::size_t b = a + 1; b < rows.size(); ++b)
        pairs.emplace_back(ratio_error(rows[a].measured / rows[b].measured, rows[a].predicted / rows[b].predicted), 1);
    }
    result.push_back({key.first, std::string(experiments::measured::kNetworkKind), key.second,
                      static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(pairs.size()),
                      experiments::measured::quantile_sample(std::move(deviations)),
                      experiments::measured::quantile_sample(pairs)});
  }
  return result;
}

}  // namespace manyworlds::farm
