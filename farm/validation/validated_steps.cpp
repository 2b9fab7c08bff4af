#include "farm/validation/validated_steps.hpp"

#include <set>

#include "core/base/error.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::farm {
namespace {

using experiments::measured::TrainingStep;

const io::Column& column(const io::Results& results, const std::string& name) {
  const io::Column* found = results.experiments.find(name);
  MANYWORLDS_CHECK(found, "no column '{}' in the results", name);
  return *found;
}

const std::string& text_at(const io::Results& results, const std::string& name, std::size_t row) {
  return std::get<std::vector<std::string>>(column(results, name).values).at(row);
}

/// Returns the predicted seconds of a row: a step, or with `layer` a step without its optimizer.
double seconds_at(const io::Results& results, std::size_t row, bool layer) {
  const double step = column(results, "step_time_s").number_at(row);
  return layer ? step - column(results, "optimizer_s").number_at(row) : step;
}

std::string json_text(const core::OptionValue& value) {
  return experiments::to_json(value).dump();
}

}  // namespace

experiments::Sweep sweep_of(const std::vector<TrainingStep>& steps) {
  experiments::Sweep sweep;
  sweep.name = "validate";
  sweep.objective = "step_time_s";
  sweep.text = "published measurements";
  sweep.columns = {{"row", core::OptionInfo::Kind::text, "", "id of the measured row"}};
  sweep.inputs = std::make_shared<const experiments::Inputs>();
  for (const TrainingStep& step : steps)
    for (experiments::Settings settings : step.experiments) {
      settings["tick_ns"] = kMeasuredTickNs;
      sweep.experiments.push_back(
          {static_cast<std::uint32_t>(sweep.experiments.size()), {step.id}, std::move(settings), sweep.inputs});
    }
  if (sweep.experiments.empty())
    throw core::InputError(steps.empty() ? std::string("the tables hold no row")
                                         : fmt::format("no row can be simulated; the first: {} ({})",
                                                       steps.front().unsupported, steps.front().detail));
  return sweep;
}

Comparison compare(const std::vector<TrainingStep>& steps, const io::Results& results) {
  Comparison comparison;
  std::size_t at = 0;
  for (const TrainingStep& step : steps) {
    if (step.experiments.empty()) {
      comparison.omitted.push_back({step.id, step.family, step.unsupported, step.detail});
      continue;
    }
    const std::size_t begin = at;
    at += step.experiments.size();
    std::string failed;
    for (std::size_t row = begin; row < at; ++row)
      if (text_at(results, "status", row) != "ran")
        failed = fmt::format("{}: {}", text_at(results, "status", row), text_at(results, "reason", row));
    if (!failed.empty()) {
      comparison.omitted.push_back({step.id, step.family, "its simulation did not end", failed});
      continue;
    }
    double predicted = seconds_at(results, begin, step.one_layer());
    if (step.one_layer()) predicted -= seconds_at(results, begin + 1, true);
    comparison.rows.push_back({step.id, step.family, step.comparison_group, step.layout, step.measured_s, predicted,
                               "s", step.weight, step.excluded_from_family});
    if (!step.one_layer())
      comparison.rows.back().closed_form =
          experiments::fitting::closed_form_s(experiments::config_of(step.experiments.front()));
  }
  return comparison;
}

std::vector<Constant> constants_of(const std::vector<TrainingStep>& steps, const experiments::Catalog& catalog) {
  std::set<std::pair<std::string, std::string>> used;  // kinds and names of entries
  for (const TrainingStep& step : steps) {
    if (step.experiments.empty()) continue;
    used.insert({"gpus", step.gpu});
    const auto stack = step.experiments.front().find("strategy.stack.name");
    if (stack != step.experiments.front().end()) used.insert({"stacks", std::get<std::string>(stack->second)});
  }
  std::vector<Constant> constants;
  for (const auto& [kind, owner] : used)
    for (const auto& [name, figure] : catalog.entries(kind).at(owner).values) {
      if (figure.certainty != "fitted" && figure.certainty != "guess") continue;
      const core::OptionInfo* info = experiments::find_option(experiments::catalog_section(kind).options, name);
      MANYWORLDS_CHECK(info, "no option '{}' of {}", name, kind);
      constants.push_back(
          {owner, name, json_text(figure.value), info->unit, figure.certainty, info->help, figure.source});
    }
  return constants;
}

}  // namespace manyworlds::farm
