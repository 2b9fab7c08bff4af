#include "farm/validation/validation_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "farm/validation/layout_choices.hpp"

namespace manyworlds::farm {
namespace {

using Json = nlohmann::ordered_json;
using experiments::measured::TrainingStep;

double percent(double share) {
  return 100 * share;
}

/// Number of rows per text, largest first.
using Counts = std::vector<std::pair<std::string, std::size_t>>;

Counts sorted(const std::map<std::string, std::size_t>& counted) {
  Counts counts(counted.begin(), counted.end());
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return counts;
}

Counts reasons_of(const Comparison& comparison) {
  std::map<std::string, std::size_t> counted;
  for (const OmittedRow& omitted : comparison.omitted) ++counted[omitted.reason];
  return sorted(counted);
}

Counts assumptions_of(const Validation& validation) {
  std::map<std::string, std::size_t> counted;
  for (const TrainingStep& step : validation.steps)
    if (!step.experiments.empty())
      for (const std::string& column : step.assumed) ++counted[column];
  for (const auto& [title, comparison] : validation.kinds)
    for (const std::string& what : comparison.assumed) ++counted[what];
  return sorted(counted);
}

/// Returns whether a step was simulated.
bool any_step(const Validation& validation) {
  return std::any_of(validation.steps.begin(), validation.steps.end(),
                     [](const TrainingStep& step) { return !step.experiments.empty(); });
}

std::size_t refused_by_memory(const Validation& validation) {
  return static_cast<std::size_t>(
      std::count_if(validation.steps.begin(), validation.steps.end(),
                    [](const TrainingStep& step) { return !step.fits_memory && step.ran != false; }));
}

std::map<std::string, std::size_t> rows_by_family(const Comparison& comparison) {
  std::map<std::string, std::size_t> counted;
  for (const ComparedRow& row : comparison.rows) ++counted[row.family];
  for (const OmittedRow& omitted : comparison.omitted) ++counted[omitted.family];
  return counted;
}

/// Returns the statistics of all counted rows as one family.
FamilyAccuracy all_families(const Comparison& comparison) {
  std::vector<ComparedRow> counted, excluded_from_family;
  for (const ComparedRow& row : comparison.rows)
    (row.excluded_from_family ? excluded_from_family : counted).push_back(row);
  return {"all, by weight", errors_of(counted), ranking_accuracy_of(counted), errors_of(excluded_from_family)};
}

std::string accuracy_line(const FamilyAccuracy& one, std::size_t rows) {
  const auto number = [](std::size_t count, double share) {
    return count == 0 ? std::string("-") : fmt::format("{:.1f}", percent(share));
  };
  const Errors& e = one.errors;
  return fmt::format("{:<48}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>9}{:>8}{:>10}{:>8}\n", one.family, rows, e.rows,
                     number(e.rows, e.mean), number(e.rows, e.median), number(e.rows, e.max),
                     e.rows == 0 ? "-" : fmt::format("{:+.1f}", percent(e.bias)), one.ranking.pairs,
                     number(one.ranking.pairs, one.ranking.share()),
                     number(one.ranking.groups, one.ranking.mean_regret),
                     number(one.ranking.groups, one.ranking.max_regret), one.excluded_from_family.rows,
                     number(one.excluded_from_family.rows, one.excluded_from_family.mean));
}

std::string accuracy_table(const Comparison& comparison) {
  std::string text = fmt::format("{:<48}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>9}{:>8}{:>10}{:>8}\n",
                                 "family (errors in %)", "rows", "run", "mean", "median", "max", "bias", "pairs",
                                 "correct", "regret", "max", "excluded", "mean");
  const auto rows = rows_by_family(comparison);
  std::set<std::string> shown;
  for (const FamilyAccuracy& one : accuracy_by_family(comparison.rows)) {
    text += accuracy_line(one, rows.at(one.family));
    shown.insert(one.family);
  }
  for (const auto& [family, count] : rows)
    if (!shown.count(family)) text += accuracy_line({family, {}, {}, {}}, count);
  return text + accuracy_line(all_families(comparison), comparison.rows.size() + comparison.omitted.size());
}

std::string counts_text(const std::string& title, const Counts& counts) {
  std::string text = counts.empty() ? "" : "\n" + title + "\n";
  for (const auto& [what, count] : counts) text += fmt::format("{:>8}  {}\n", count, what);
  return text;
}

std::string constants_text(const std::vector<Constant>& constants) {
  std::string text =
      constants.empty() ? "" : "\nconstants that were fitted or guessed, one set for each GPU and stack\n";
  for (const Constant& one : constants)
    text += fmt::format("  {:<22}  {:<28}{:>12} {:<8}{:<8}{}\n", one.owner, one.name, one.value, one.unit,
                        one.certainty, one.meaning);
  return text;
}

std::string rows_text(const Comparison& comparison) {
  std::string text = fmt::format("\n{:<32}{:<48}{:>12}{:>12}{:>7}{:>9}{:>13}\n", "row", "family", "measured",
                                 "predicted", "unit", "%", "closed form");
  for (const ComparedRow& row : comparison.rows)
    text += fmt::format("{:<32}{:<48}{:>12.5g}{:>12.5g}{:>7}{:>+9.1f}{:>13}{}\n", row.id, row.family, row.measured,
                        row.predicted, row.unit, percent(row.error()),
                        row.closed_form > 0 ? fmt::format("{:.5g}", row.closed_form) : "-",
                        row.excluded_from_family ? "  excluded" : "");
  for (const OmittedRow& omitted : comparison.omitted)
    text += fmt::format("{:<32}left out: {}{}\n", omitted.id, omitted.reason,
                        omitted.detail.empty() ? "" : fmt::format(" ({})", omitted.detail));
  return text;
}

/// Returns the choices among many layouts, each with its pick, and which layouts were predicted to run.
std::string choices_text(const Validation& validation, const Comparison& comparison) {
  std::string text;
  const std::vector<LayoutChoice> choices = layout_choices(validation.steps, comparison);
  if (!choices.empty())
    text += fmt::format("\n{:<48}{:>9}{:>10}{:>9}{:>8}{:>9}\n",
                        fmt::format("choices among {} layouts or more (%)", kMinLayouts), "measured", "simulated",
                        "regret", "pairs", "correct");
  for (const LayoutChoice& one : choices)
    text += fmt::format("{:<48}{:>9}{:>10}{:>9.1f}{:>8}{:>9.1f}\n", one.family + ", " + one.name, one.measured,
                        one.compared, percent(one.ranking.max_regret), one.ranking.pairs, percent(one.ranking.share()));
  if (!choices.empty())
    text += fmt::format("{:.1f} % of {} picks are within {:.0f} % of the best\n", percent(good_picks(choices)),
                        choices.size(), percent(kGoodPick));
  for (const RunVerdicts& one : run_verdicts(validation.steps))
    text += fmt::format("{}: {} of {} layouts that ran, and {} of {} that did not, were predicted so: {:.1f} %\n",
                        one.family, one.ran_right, one.ran, one.failed_right, one.failed, percent(one.share()));
  return text;
}

Json choices_json(const Validation& validation, const Comparison& comparison) {
  Json list = Json::array();
  for (const LayoutChoice& one : layout_choices(validation.steps, comparison))
    list.push_back({{"family", one.family},
                    {"choice", one.name},
                    {"measured", one.measured},
                    {"simulated", one.compared},
                    {"regret_percent", percent(one.ranking.max_regret)},
                    {"pairs", one.ranking.pairs},
                    {"ordered_right_percent", percent(one.ranking.share())}});
  return list;
}

Json verdicts_json(const Validation& validation) {
  Json list = Json::array();
  for (const RunVerdicts& one : run_verdicts(validation.steps))
    list.push_back({{"family", one.family},
                    {"ran", one.ran},
                    {"ran_right", one.ran_right},
                    {"did_not_run", one.failed},
                    {"did_not_run_right", one.failed_right}});
  return list;
}

Json as_json(const Errors& errors) {
  return {{"rows", errors.rows},
          {"mean_percent", percent(errors.mean)},
          {"median_percent", percent(errors.median)},
          {"max_percent", percent(errors.max)},
          {"bias_percent", percent(errors.bias)}};
}

Json as_json(const FamilyAccuracy& one, std::size_t rows) {
  Json object{{"family", one.family}, {"rows", rows}, {"run", one.errors.rows + one.excluded_from_family.rows}};
  object["errors"] = one.errors.rows == 0 ? Json() : as_json(one.errors);
  object["pairs"] = one.ranking.pairs;
  object["ordered_right_percent"] = one.ranking.pairs == 0 ? Json() : Json(percent(one.ranking.share()));
  object["choices"] = one.ranking.groups;
  object["regret_mean_percent"] = one.ranking.groups == 0 ? Json() : Json(percent(one.ranking.mean_regret));
  object["regret_max_percent"] = one.ranking.groups == 0 ? Json() : Json(percent(one.ranking.max_regret));
  object["excluded"] = one.excluded_from_family.rows == 0 ? Json() : as_json(one.excluded_from_family);
  return object;
}

Json as_json(const Counts& counts, const char* name) {
  Json object = Json::array();
  for (const auto& [what, count] : counts) object.push_back({{name, what}, {"rows", count}});
  return object;
}

Json rows_json(const Comparison& comparison) {
  Json rows = Json::array();
  for (const ComparedRow& row : comparison.rows)
    rows.push_back({{"id", row.id},
                    {"family", row.family},
                    {"measured", row.measured},
                    {"predicted", row.predicted},
                    {"unit", row.unit},
                    {"error_percent", percent(row.error())},
                    {"closed_form", row.closed_form > 0 ? Json(row.closed_form) : Json()},
                    {"weight", row.weight},
                    {"excluded", row.excluded_from_family}});
  for (const OmittedRow& omitted : comparison.omitted)
    rows.push_back(
        {{"id", omitted.id}, {"family", omitted.family}, {"left_out", omitted.reason}, {"detail", omitted.detail}});
  return rows;
}

/// Returns all results for one kind of measurement.
Json as_json(const Comparison& comparison, bool every_row) {
  Json object{{"families", Json::array()}};
  const auto rows = rows_by_family(comparison);
  for (const FamilyAccuracy& one : accuracy_by_family(comparison.rows))
    object["families"].push_back(as_json(one, rows.at(one.family)));
  object["all"] = as_json(all_families(comparison), comparison.rows.size() + comparison.omitted.size());
  object["left_out"] = as_json(reasons_of(comparison), "reason");
  if (every_row) object["rows"] = rows_json(comparison);
  return object;
}

}  // namespace

std::string validation_text(const Validation& validation, bool every_row) {
  std::string text;
  for (const auto& [title, comparison] : validation.kinds) {
    text += fmt::format("{}{}\n\n", text.empty() ? "" : "\n", title) + accuracy_table(comparison);
    text += counts_text("rows left out, by reason", reasons_of(comparison));
    if (title == kStepsTitle) text += choices_text(validation, comparison);
    if (every_row) text += rows_text(comparison);
  }
  text += fmt::format(
      "\npairs: of one family, model, number of GPUs, batch and precision, different layouts, measured more than "
      "{:.0f} % "
      "apart\nregret: measured time of the layout predicted best over the best measured; excluded: rows excluded from "
      "the figures before\n",
      percent(kMinPairDifference));
  text += counts_text("rows run in which a column was assumed", assumptions_of(validation));
  if (any_step(validation))
    text += fmt::format("\nwhat GPUs do in a step begins and ends on ticks of {} ns (tick_ns)\n", kMeasuredTickNs);
  if (const std::size_t refused = refused_by_memory(validation); refused > 0)
    text += fmt::format(
        "\n{} rows need more memory than their GPU has, by our account; they ran, so they are simulated\n", refused);
  return text + constants_text(validation.constants);
}

Json validation_json(const Validation& validation, bool every_row) {
  Json object{{"kinds", Json::array()}};
  for (const auto& [title, comparison] : validation.kinds) {
    object["kinds"].push_back(as_json(comparison, every_row));
    object["kinds"].back()["kind"] = title;
    if (title == kStepsTitle) object["kinds"].back()["layout_choices"] = choices_json(validation, comparison);
  }
  object["assumed"] = as_json(assumptions_of(validation), "column");
  object["refused_by_memory"] = refused_by_memory(validation);
  object["run_verdicts"] = verdicts_json(validation);
  if (any_step(validation)) object["tick_ns"] = kMeasuredTickNs;
  object["constants"] = Json::array();
  for (const Constant& one : validation.constants)
    object["constants"].push_back({{"owner", one.owner},
                                   {"name", one.name},
                                   {"value", one.value},
                                   {"unit", one.unit},
                                   {"certainty", one.certainty},
                                   {"meaning", one.meaning},
                                   {"source", one.source}});
  return object;
}

}  // namespace manyworlds::farm
