#include "farm/validation/validation_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/escape.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/text/csv.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::farm {
namespace {

using experiments::Catalog;
using experiments::fitting::Constant;
using experiments::fitting::FitRow;
using experiments::measured::TrainingStep;

/// Kinds of catalog entries with constants that steps tell, and where settings hold them.
struct OwnerKind {
  const char *kind, *prefix;
};
constexpr OwnerKind kOwnerKinds[] = {{"gpus", "cluster.gpu."}, {"stacks", "strategy.stack."}};

/// Returns the entry whose catalog file contains the constants of the step's GPU or stack; empty if none was named.
std::string owner(const Catalog& catalog, const TrainingStep& step, const OwnerKind& owner_kind) {
  const experiments::Settings& settings = step.experiments.front();
  const auto named = settings.find(owner_kind.prefix + std::string("name"));
  if (named == settings.end()) return {};
  const auto& name = std::get<std::string>(named->second);
  const auto entry = catalog.entries(owner_kind.kind).find(name);
  return entry == catalog.entries(owner_kind.kind).end() || entry->second.constants_of.empty()
             ? name
             : entry->second.constants_of;
}

FitRow fit_row(const TrainingStep& step, const Catalog& catalog) {
  const experiments::ExperimentConfig config = experiments::config_of(step.experiments.front());
  return {config.configuration,
          experiments::fitting::links_of(config),
          owner(catalog, step, kOwnerKinds[0]),
          owner(catalog, step, kOwnerKinds[1]),
          step.measured_s,
          step.weight};
}

constexpr std::string_view kStepConstants[] = {"sustained_rate", "host_kernel_us", "host_collective_us",
                                               "communication_slowdown"};

bool is_fitted_here(const std::string& name, const experiments::SourcedValue& figure) {
  return figure.certainty == "fitted" &&
         std::find(std::begin(kStepConstants), std::end(kStepConstants), name) != std::end(kStepConstants);
}

/// Returns the constants to fit, with the values that `steps` were simulated with.
std::vector<Constant> constants_used(const std::vector<TrainingStep>& steps, const Catalog& catalog) {
  std::vector<Constant> constants;
  for (const OwnerKind& owner_kind : kOwnerKinds) {
    std::map<std::string, const experiments::Settings*> used;
    for (const TrainingStep& step : steps)
      if (!step.experiments.empty()) used.try_emplace(owner(catalog, step, owner_kind), &step.experiments.front());
    used.erase("");
    for (const auto& [name, settings] : used)
      for (const auto& [key, figure] : catalog.entries(owner_kind.kind).at(name).values)
        if (is_fitted_here(key, figure))
          constants.push_back({name, key, std::get<double>(settings->at(owner_kind.prefix + key))});
  }
  return constants;
}

}  // namespace

std::span<const std::string_view> step_constants() {
  return kStepConstants;
}

namespace {

/// The steps that constants are fitted to, and the family of each.
struct StepsToFit {
  std::vector<FitRow> rows;
  std::vector<std::string> families;
};

StepsToFit steps_to_fit(const std::vector<TrainingStep>& steps, const std::vector<ComparedRow>& compared,
                        const Catalog& catalog, const std::vector<Constant>& start) {
  std::map<std::string, double> predicted, family_weight;
  for (const ComparedRow& row : compared)
    if (!row.excluded_from_family) predicted[row.id] = row.predicted;
  StepsToFit result;
  auto& [rows, families] = result;
  for (const TrainingStep& step : steps) {
    const auto found = predicted.find(step.id);
    if (found == predicted.end() || step.one_layer()) continue;
    FitRow row = fit_row(step, catalog);
    if (!experiments::fitting::is_fitted_to(row.configuration.model)) continue;
    // Effects that the closed form omits are assumed to be proportional to it.
    row.measured_s *= experiments::fitting::predict_s(row, start) / found->second;
    rows.push_back(std::move(row));
    families.push_back(step.family);
    family_weight[step.family] += step.weight;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].weight /= std::sqrt(family_weight[families[i]]);
  return result;
}

}  // namespace

FamilyConstants fit_constants(const std::vector<TrainingStep>& steps, const std::vector<ComparedRow>& compared,
                              const Catalog& catalog, const std::string& without) {
  const std::vector<Constant> start = constants_used(steps, catalog);
  StepsToFit to_fit = steps_to_fit(steps, compared, catalog, start);
  experiments::fitting::RepeatedFit fits(std::move(to_fit.rows), start);
  return {without, fits.fit([&](std::size_t row) { return to_fit.families[row] != without; })};
}

std::vector<FamilyConstants> fit_leaving_one_out(const std::vector<TrainingStep>& steps,
                                                 const std::vector<ComparedRow>& compared, const Catalog& catalog) {
  const std::vector<Constant> start = constants_used(steps, catalog);
  StepsToFit to_fit = steps_to_fit(steps, compared, catalog, start);
  experiments::fitting::RepeatedFit fits(std::move(to_fit.rows), start);
  std::vector<FamilyConstants> result;
  for (const FamilyAccuracy& family : accuracy_by_family(compared))
    result.push_back({family.family, fits.fit([&](std::size_t row) { return to_fit.families[row] != family.family; })});
  return result;
}

std::vector<TrainingStep> with_constants(const std::vector<TrainingStep>& steps,
                                         const std::vector<FamilyConstants>& constants, const Catalog& catalog) {
  std::vector<TrainingStep> result;
  for (const TrainingStep& step : steps)
    for (const FamilyConstants& family : constants) {
      if (!family.family.empty() && family.family != step.family) continue;
      TrainingStep changed = step;
      for (const OwnerKind& owner_kind : kOwnerKinds) {
        if (step.experiments.empty()) break;
        const std::string name = owner(catalog, step, owner_kind);
        for (experiments::Settings& settings : changed.experiments)
          for (const Constant& constant : family.constants)
            if (constant.owner == name) settings[owner_kind.prefix + constant.key] = constant.value;
      }
      result.push_back(std::move(changed));
      break;
    }
  return result;
}

Comparison scale_by_closed_form(const std::vector<TrainingStep>& steps, const Comparison& compared,
                                const std::vector<FamilyConstants>& constants, const Catalog& catalog) {
  std::map<std::string, const TrainingStep*> by_id;
  for (const TrainingStep& step : steps)
    if (!step.experiments.empty()) by_id[step.id] = &step;
  const std::vector<Constant> start = constants_used(steps, catalog);
  Comparison result = compared;
  for (ComparedRow& row : result.rows) {
    const FitRow closed_form_row = fit_row(*by_id.at(row.id), catalog);
    const auto family = std::find_if(constants.begin(), constants.end(),
                                     [&](const FamilyConstants& constant) { return constant.family == row.family; });
    if (family != constants.end())
      row.predicted *= experiments::fitting::predict_s(closed_form_row, family->constants) /
                       experiments::fitting::predict_s(closed_form_row, start);
  }
  return result;
}

std::string constants_table(const std::vector<FamilyConstants>& constants) {
  std::string text = "family,owner,constant,value\n";
  for (const FamilyConstants& family : constants)
    for (const Constant& constant : family.constants)
      text += fmt::format("{},{},{},{:.17g}\n", core::csv_field(family.family), core::csv_field(constant.owner),
                          constant.key, constant.value);
  return text;
}

std::vector<FamilyConstants> read_constants(const std::string& text, const std::string& file, const Catalog& catalog) {
  const experiments::import::CsvTable table = experiments::import::parse_csv(text, file);
  for (const char* column : {"family", "owner", "constant", "value"})
    if (!table.header->has(column))
      throw core::InputError(fmt::format("has no column '{}'; constants have family, owner, constant, value", column),
                             file, 1);
  std::vector<FamilyConstants> result;
  for (const auto& row : table.rows) {
    const std::string family(row.text("family")), name(row.text("owner")), key(row.text("constant"));
    const auto owner_kind = std::find_if(std::begin(kOwnerKinds), std::end(kOwnerKinds), [&](const OwnerKind& one) {
      return catalog.entries(one.kind).count(name) > 0;
    });
    if (owner_kind == std::end(kOwnerKinds)) row.fail(fmt::format("'{}' is no GPU and no stack of the catalog", name));
    const core::OptionInfo* info =
        experiments::find_option(experiments::catalog_section(owner_kind->kind).options, key);
    if (!info || info->kind != core::OptionInfo::Kind::real) row.fail(fmt::format("unknown constant '{}'", key));
    const auto value = row.real("value");
    if (!value || !(*value >= info->minimum && *value <= info->maximum))
      row.fail(fmt::format("'{}' must be from {} to {}", key, info->minimum, info->maximum));
    if (result.empty() || result.back().family != family) result.push_back({family, {}});
    result.back().constants.push_back({name, key, *value});
  }
  return result;
}

}  // namespace manyworlds::farm
