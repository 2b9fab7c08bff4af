#include "farm/validation/validation_markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "experiments/analysis/uncertainty.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::farm {
namespace {

using Figure = std::optional<double>;  // a share

/// A row of the table.
struct Line {
  std::string family, what;
  std::string rows;
  std::map<std::string, Figure> figures;  // by their names in bars.csv

  Figure figure(const std::string& name) const {
    const auto found = figures.find(name);
    return found == figures.end() ? Figure() : found->second;
  }
};

std::string shown(Figure figure) {
  return figure ? fmt::format("{:.1f} %", 100 * *figure) : "–";
}

const char* what_of(const std::string& title) {
  if (title == kStepsTitle) return "step time";
  return title == kCollectivesTitle ? "collective" : "peak memory";
}

/// What the project promised of a family, and whether it holds.
std::string bars_of(const Line& line) {
  static const experiments::import::CsvTable table =
      experiments::import::parse_csv(experiments::measured::compiled_table("bars"), "bars.csv");
  std::string text;
  for (const auto& row : table.rows) {
    if (row.text("what") != line.what || row.text("family") != line.family) continue;
    const std::string figure(row.text("figure"));
    const double bar = row.real("percent").value() / 100;
    const bool more_is_better = figure == "ordered right";
    const Figure reached = line.figure(figure);
    const bool met = reached && (more_is_better ? *reached >= bar : *reached <= bar);
    text += fmt::format("{}{} {} {:g} %{}", text.empty() ? "" : ", ", figure, more_is_better ? "≥" : "≤", 100 * bar,
                        met       ? ""
                        : reached ? " **missed**"
                                  : " (not run)");
  }
  return text.empty() ? "–" : text;
}

const Comparison* titled(const Validation& validation, const char* title) {
  for (const auto& [name, comparison] : validation.kinds)
    if (name == title) return &comparison;
  return nullptr;
}

/// Of families without a figure, last.
double worst(const Line& line) {
  return line.figure("mean").value_or(-1);
}

std::vector<Line> lines_of(const std::string& title, const Comparison& comparison, const Comparison* left_out) {
  std::map<std::string, std::size_t> rows;
  std::map<std::string, double> without;
  for (const Compared& row : comparison.rows) ++rows[row.family];
  for (const NotCompared& row : comparison.left) ++rows[row.family];
  if (left_out != nullptr)
    for (const FamilyFigures& one : figures_by_family(left_out->rows))
      if (one.errors.rows > 0) without[one.family] = one.errors.mean;
  std::vector<Line> lines;
  for (const FamilyFigures& one : figures_by_family(comparison.rows)) {
    Line line{one.family, what_of(title), fmt::format("{} of {}", one.errors.rows, rows.at(one.family)), {}};
    if (one.errors.rows > 0) line.figures = {{"mean", one.errors.mean}, {"max", one.errors.most}};
    if (without.count(one.family) > 0) line.figures["left out"] = without.at(one.family);
    if (one.order.pairs > 0) line.figures["ordered right"] = one.order.share();
    if (one.order.choices > 0) {
      line.figures["regret"] = one.order.regret_mean;
      line.figures["largest regret"] = one.order.regret_most;
    }
    rows.erase(one.family);
    lines.push_back(std::move(line));
  }
  for (const auto& [family, count] : rows) lines.push_back({family, what_of(title), fmt::format("0 of {}", count), {}});
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return worst(a) > worst(b); });
  return lines;
}

/// For each chip the mean over its families, which count alike.
std::vector<Line> means_over_families(const Validation& validation, const std::vector<Line>& families,
                                      const experiments::Catalog& catalog) {
  std::map<std::string, std::map<std::string, const Line*>> by_chip;
  for (const auto& step : validation.steps)
    for (const Line& line : families)
      if (line.family == step.family && line.figure("mean")) {
        std::string chip = experiments::chip_of(catalog, step.gpu);
        chip = chip.substr(0, chip.find('_'));
        std::transform(chip.begin(), chip.end(), chip.begin(),
                       [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
        by_chip[chip][line.family] = &line;
      }
  std::vector<Line> made;
  for (const auto& [chip, lines] : by_chip) {
    Line mean{chip + ", mean over families", "step time", fmt::format("{} families", lines.size()), {}};
    for (const char* figure : {"mean", "left out"}) {
      double sum = 0, count = 0;
      for (const auto& [family, line] : lines)
        if (const Figure one = line->figure(figure)) sum += *one, count += 1;
      if (count > 0) mean.figures[figure] = sum / count;
    }
    made.push_back(std::move(mean));
  }
  return made;
}

}  // namespace

std::string validation_markdown(const Validation& validation, const experiments::Catalog& catalog) {
  std::string text =
      "| family | what | rows | mean error | largest | left out | pairs ordered right | bar |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const auto& [title, comparison] : validation.kinds) {
    if (title == kLeftOutTitle) continue;
    const bool steps = title == kStepsTitle;
    std::vector<Line> lines = lines_of(title, comparison, steps ? titled(validation, kLeftOutTitle) : nullptr);
    if (steps)
      for (Line& line : means_over_families(validation, lines, catalog)) lines.push_back(std::move(line));
    for (const Line& line : lines)
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", core::escape_markdown(line.family), line.what,
                          line.rows, shown(line.figure("mean")), shown(line.figure("max")),
                          shown(line.figure("left out")), shown(line.figure("ordered right")), bars_of(line));
  }
  return text;
}

}  // namespace manyworlds::farm
