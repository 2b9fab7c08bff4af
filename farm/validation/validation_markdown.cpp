#include "farm/validation/validation_markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "experiments/analysis/uncertainty.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/text/csv.hpp"
#include "farm/validation/layout_choices.hpp"

namespace manyworlds::farm {
namespace {

using OptionalShare = std::optional<double>;  // a share, if known

/// A row of the table.
struct TableRow {
  std::string family, what;
  std::string rows;
  std::map<std::string, OptionalShare> metrics;  // by their names in bars.csv

  OptionalShare metric(const std::string& name) const {
    const auto found = metrics.find(name);
    return found == metrics.end() ? OptionalShare() : found->second;
  }
};

// Metrics of choices among layouts that have no column of their own.
constexpr const char* kGoodPicks = "picks within 10 %";
constexpr const char* kRunsRight = "verdicts on running";

std::string percent_text(OptionalShare metric) {
  return metric ? fmt::format("{:.1f} %", 100 * *metric) : "–";
}

const char* measurement_of(const std::string& title) {
  if (title == kStepsTitle) return "step time";
  if (title == kLeftOutGpusTitle) return "kernel, GPU left out";
  if (title == kKernelsTitle || title == kLeftOutShapesTitle) return "kernel";
  return title == kCollectivesTitle ? "collective" : "peak memory";
}

/// Returns the project's accuracy targets for a family, and whether it meets them.
std::string targets_of(const TableRow& row_line) {
  static const experiments::import::CsvTable table =
      experiments::import::parse_csv(experiments::measured::compiled_table("bars"), "bars.csv");
  std::string text;
  for (const auto& row : table.rows) {
    if (row.text("what") != row_line.what || row.text("family") != row_line.family) continue;
    const std::string metric(row.text("figure"));
    const double target = row.real("percent").value() / 100;
    const bool more_is_better = metric == "ordered right" || metric == kGoodPicks || metric == kRunsRight;
    const OptionalShare reached = row_line.metric(metric);
    const bool met = reached && (more_is_better ? *reached >= target : *reached <= target);
    text += fmt::format(
        "{}{} {} {:g} %{}", text.empty() ? "" : ", ", metric, more_is_better ? "≥" : "≤", 100 * target,
        met       ? ""
        : reached ? fmt::format(" **missed**{}",
                                more_is_better && metric != "ordered right" ? " (" + percent_text(reached) + ")" : "")
                  : " (not run)");
  }
  return text.empty() ? "–" : text;
}

const Comparison* find_comparison(const Validation& validation, const char* title) {
  for (const auto& [name, comparison] : validation.kinds)
    if (name == title) return &comparison;
  return nullptr;
}

/// Returns the mean error; families without one sort last.
double mean_error(const TableRow& row_line) {
  return row_line.metric("mean").value_or(-1);
}

std::vector<TableRow> lines_of(const std::string& title, const Comparison& comparison, const Comparison* held_out) {
  std::map<std::string, std::size_t> rows;
  std::map<std::string, double> without;
  for (const ComparedRow& row : comparison.rows) ++rows[row.family];
  for (const OmittedRow& row : comparison.omitted) ++rows[row.family];
  if (held_out != nullptr)
    for (const FamilyAccuracy& one : accuracy_by_family(held_out->rows))
      if (one.errors.rows > 0) without[one.family] = one.errors.mean;
  std::vector<TableRow> lines;
  for (const FamilyAccuracy& one : accuracy_by_family(comparison.rows)) {
    TableRow row_line{
        one.family, measurement_of(title), fmt::format("{} of {}", one.errors.rows, rows.at(one.family)), {}};
    if (one.errors.rows > 0) row_line.metrics = {{"mean", one.errors.mean}, {"max", one.errors.max}};
    if (without.count(one.family) > 0) row_line.metrics["held out"] = without.at(one.family);
    if (one.ranking.pairs > 0) row_line.metrics["ordered right"] = one.ranking.share();
    if (one.ranking.groups > 0) {
      row_line.metrics["regret"] = one.ranking.mean_regret;
      row_line.metrics["largest regret"] = one.ranking.max_regret;
    }
    rows.erase(one.family);
    lines.push_back(std::move(row_line));
  }
  for (const auto& [family, count] : rows)
    lines.push_back({family, measurement_of(title), fmt::format("0 of {}", count), {}});
  std::stable_sort(lines.begin(), lines.end(),
                   [](const TableRow& a, const TableRow& b) { return mean_error(a) > mean_error(b); });
  return lines;
}

/// Adds what families with large choices of layouts say about choosing.
void add_choices(std::vector<TableRow>& lines, const Validation& validation, const Comparison& comparison) {
  const std::vector<LayoutChoice> choices = layout_choices(validation.steps, comparison);
  const std::vector<RunVerdicts> verdicts = run_verdicts(validation.steps);
  for (TableRow& row_line : lines) {
    std::vector<LayoutChoice> own;
    for (const LayoutChoice& one : choices)
      if (one.family == row_line.family) own.push_back(one);
    if (!own.empty()) row_line.metrics[kGoodPicks] = good_picks(own);
    for (const RunVerdicts& one : verdicts)
      if (one.family == row_line.family) row_line.metrics[kRunsRight] = one.share();
  }
}

/// Returns, for each chip, the unweighted mean over its families.
std::vector<TableRow> means_over_families(const Validation& validation, const std::vector<TableRow>& families,
                                          const experiments::Catalog& catalog) {
  std::map<std::string, std::map<std::string, const TableRow*>> by_chip;
  for (const auto& step : validation.steps)
    for (const TableRow& row_line : families)
      if (row_line.family == step.family && row_line.metric("mean")) {
        std::string chip = experiments::chip_of(catalog, step.gpu);
        chip = chip.substr(0, chip.find('_'));
        std::transform(chip.begin(), chip.end(), chip.begin(),
                       [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
        by_chip[chip][row_line.family] = &row_line;
      }
  std::vector<TableRow> means;
  for (const auto& [chip, lines] : by_chip) {
    TableRow mean{chip + ", mean over families", "step time", fmt::format("{} families", lines.size()), {}};
    for (const char* metric : {"mean", "held out"}) {
      double sum = 0, count = 0;
      for (const auto& [family, row_line] : lines)
        if (const OptionalShare one = row_line->metric(metric)) sum += *one, count += 1;
      if (count > 0) mean.metrics[metric] = sum / count;
    }
    means.push_back(std::move(mean));
  }
  return means;
}

/// Returns what each switch is worth: the time before over the time after, as published and as predicted, means over
/// pairs of steps and, in brackets, the least and the greatest.
std::string switches_table(const Comparison& comparison) {
  std::string text =
      "\n| what changes | pairs of steps | published: before over after | predicted | mean error | largest | bar |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const FamilyAccuracy& one : accuracy_by_family(comparison.rows)) {
    std::vector<ComparedRow> rows;
    std::copy_if(comparison.rows.begin(), comparison.rows.end(), std::back_inserter(rows),
                 [&](const ComparedRow& row) { return row.family == one.family; });
    const auto ratios = [&](double ComparedRow::*side) {
      double sum = 0, least = rows.front().*side, most = least;
      for (const ComparedRow& row : rows) {
        sum += row.*side;
        least = std::min(least, row.*side), most = std::max(most, row.*side);
      }
      return fmt::format("{:.2f} ({:.2f} to {:.2f})", sum / static_cast<double>(rows.size()), least, most);
    };
    const TableRow bar{one.family, "switch", "", {{"mean", one.errors.mean}, {"max", one.errors.max}}};
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", one.family, rows.size(),
                        ratios(&ComparedRow::measured), ratios(&ComparedRow::predicted), percent_text(one.errors.mean),
                        percent_text(one.errors.max), targets_of(bar));
  }
  return text;
}

}  // namespace

std::string validation_markdown(const Validation& validation, const experiments::Catalog& catalog) {
  std::string text =
      "| family | what | rows | mean error | largest | held out | pairs ordered right | bar |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const auto& [title, comparison] : validation.kinds) {
    if (title == kHeldOutTitle || title == kSwitchesTitle) continue;
    const bool steps = title == kStepsTitle;
    std::vector<TableRow> lines =
        lines_of(title, comparison, steps ? find_comparison(validation, kHeldOutTitle) : nullptr);
    if (steps) add_choices(lines, validation, comparison);
    if (steps)
      for (TableRow& row_line : means_over_families(validation, lines, catalog)) lines.push_back(std::move(row_line));
    for (const TableRow& row_line : lines)
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", core::escape_markdown(row_line.family),
                          row_line.what, row_line.rows, percent_text(row_line.metric("mean")),
                          percent_text(row_line.metric("max")), percent_text(row_line.metric("held out")),
                          percent_text(row_line.metric("ordered right")), targets_of(row_line));
  }
  if (const Comparison* switches = find_comparison(validation, kSwitchesTitle)) text += switches_table(*switches);
  return text;
}

}  // namespace manyworlds::farm
