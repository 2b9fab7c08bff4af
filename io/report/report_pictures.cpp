#include "io/report/report_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>

#include "core/workload/program/step_parts.hpp"
#include "io/pictures/svg.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::io {
namespace {

constexpr double kWidth = 900, kBar = 16, kRow = 22, kTop = 34, kBottom = 44, kRight = 20, kLetter = 7.2;
constexpr std::size_t kMaxLetters = 52, kFirstLetters = 32, kMaxValues = 12;
constexpr int kTicks = 6;

/// Shortens a long text in the middle, because layouts also differ at their ends.
std::string shortened(const std::string& text) {
  const std::size_t letters = display_width(text);
  if (letters <= kMaxLetters) return text;
  std::string cut;
  std::size_t letter = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80 && ++letter == kFirstLetters + 1) cut += "…";
    if (letter <= kFirstLetters || letter > letters - (kMaxLetters - kFirstLetters - 1)) cut += c;
  }
  return cut;
}

/// The factor that converts a column's values for an axis, and the axis title with the unit.
struct Unit {
  double factor = 1;
  std::string axis_title;
};
Unit unit_of(const Column& column, const std::string& title) {
  if (column.unit == "bytes") return {1.0 / (1 << 30), title + ", GiB"};
  if (is_share(column.name)) return {100, title + ", %"};
  return {1, column.unit.empty() || column.unit == "tokens/s" ? title : title + ", " + column.unit};
}

/// Draws the grid lines and numbers of a horizontal axis below a picture that extends from `top` to `bottom`.
void draw_x_axis(Svg& svg, const AxisTicks& steps, const std::function<double(double)>& x, double top, double bottom) {
  for (double at = steps.first; at <= steps.last + steps.step / 2; at += steps.step) {
    svg.line(x(at), top, x(at), bottom, "grid");
    svg.text(x(at), bottom + 16, fmt::format("{:.6g}", std::abs(at) < steps.step / 2 ? 0 : at), Svg::Anchor::middle,
             "quiet");
  }
}

/// A chart with a named row for each item and a horizontal axis below.
class RowChart {
 public:
  RowChart(const std::vector<std::string>& names, double low, double high, const std::string& title, double legend)
      : names_(names), ticks_(round_ticks(low, high, kTicks)), top_(kTop + legend) {
    std::size_t longest = 4;
    for (const std::string& name : names_) longest = std::max(longest, display_width(name));
    left_ = 16 + kLetter * static_cast<double>(longest);
    svg = Svg(kWidth, y(names_.size()) + kBottom);
    draw_x_axis(
        svg, ticks_, [this](double value) { return x(value); }, top_ - 6, y(names_.size()));
    svg.text((left_ + kWidth - kRight) / 2, y(names_.size()) + 34, title, Svg::Anchor::middle, "quiet");
    for (std::size_t i = 0; i < names_.size(); ++i) svg.text(left_ - 8, y(i) + 13, names_[i], Svg::Anchor::end);
  }
  double x(double value) const {
    return left_ + (kWidth - kRight - left_) * (value - ticks_.first) / (ticks_.last - ticks_.first);
  }
  double y(std::size_t row) const { return top_ + kRow * static_cast<double>(row); }

  Svg svg{0, 0};

 private:
  const std::vector<std::string> names_;
  AxisTicks ticks_;
  double left_ = 0, top_;
};

std::string breakdown(const Report& report) {
  const Table& table = report.results->experiments;
  const auto& rows = report.ranking.rows;
  // Rows are named only by the axes in which they differ: the others would crowd these out.
  const Axes axes(*report.results);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string name = fmt::format("#{}", i + 1);
    for (const Axes::Axis& axis : axes.all())
      if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
            return axis.column->text_at(row.row) != axis.column->text_at(rows.front().row);
          }))
        name += fmt::format(" {}={}", axis.short_name, axis.column->text_at(rows[i].row));
    names.push_back(shortened(name));
  }
  const Column* step = table.find("step_time_s");
  double longest = 0;
  for (const auto& row : rows)
    if (step != nullptr && step->number_at(row.row) > longest) longest = step->number_at(row.row);
  constexpr double kLegendLine = 18, kLegendColumnWidth = 120;
  RowChart picture(names, 0, longest, "step time, s", kLegendLine);
  std::size_t listed = 0;
  std::vector<double> at(rows.size(), 0);
  for (const core::workload::StepPartInfo& part : core::workload::kStepParts) {
    const Column* column = table.find(part.column);
    if (column == nullptr) continue;
    bool any = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double value = column->number_at(rows[i].row);
      if (!(value > 0)) continue;
      any = true;
      picture.svg.rectangle(picture.x(at[i]), picture.y(i), picture.x(at[i] + value) - picture.x(at[i]), kBar,
                            part.colour, fmt::format("{} {}", column->name, with_si_prefix(value, "s")));
      at[i] += value;
    }
    if (!any) continue;
    const double x = 10 + kLegendColumnWidth * static_cast<double>(listed % 7),
                 y = 8 + kLegendLine * static_cast<double>(listed / 7);
    picture.svg.rectangle(x, y, 12, 12, part.colour);
    picture.svg.text(x + 17, y + 11, part.name());
    ++listed;
  }
  return picture.svg.finish();
}

std::string pareto(const Report& report, const ParetoFront& front) {
  constexpr double kHeight = 420, kLeft = 80;
  const Unit cost = unit_of(*front.cost, front.title), gain = unit_of(*report.throughput, "tokens/s/GPU");
  struct Point {
    double x, y;
  };
  std::vector<Point> points;
  const Table& table = report.results->experiments;
  const auto drawable = [&](std::size_t row) {
    return std::isfinite(front.cost->number_at(row)) && std::isfinite(report.throughput->number_at(row));
  };
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (table.text_at("status", row) == "ran" && drawable(row))
      points.push_back({front.cost->number_at(row) * cost.factor, report.throughput->number_at(row) * gain.factor});
  if (points.empty()) points.push_back({0, 0});
  double low_x = points.front().x, high_x = low_x, low_y = points.front().y, high_y = low_y;
  for (const Point& point : points) {
    low_x = std::min(low_x, point.x), high_x = std::max(high_x, point.x);
    low_y = std::min(low_y, point.y), high_y = std::max(high_y, point.y);
  }
  const AxisTicks x_ticks = round_ticks(low_x, high_x, kTicks), y_ticks = round_ticks(low_y, high_y, kTicks);
  const auto x = [&](double value) {
    return kLeft + (kWidth - kRight - kLeft) * (value - x_ticks.first) / (x_ticks.last - x_ticks.first);
  };
  const auto y = [&](double value) {
    return kHeight - kBottom - (kHeight - kBottom - kTop) * (value - y_ticks.first) / (y_ticks.last - y_ticks.first);
  };
  Svg svg(kWidth, kHeight);
  draw_x_axis(svg, x_ticks, x, kTop, y(y_ticks.first));
  for (double at = y_ticks.first; at <= y_ticks.last + y_ticks.step / 2; at += y_ticks.step) {
    svg.line(kLeft, y(at), kWidth - kRight, y(at), "grid");
    svg.text(kLeft - 8, y(at) + 4, fmt::format("{:.6g}", at), Svg::Anchor::end, "quiet");
  }
  svg.text((kLeft + kWidth) / 2, y(y_ticks.first) + 34, cost.axis_title, Svg::Anchor::middle, "quiet");
  svg.text(10, kTop - 14, gain.axis_title, Svg::Anchor::start, "quiet");
  // Draws one dot for all points on the same pixel.
  std::set<std::pair<int, int>> taken;
  for (const Point& point : points)
    if (taken.emplace(static_cast<int>(x(point.x)), static_cast<int>(y(point.y))).second)
      svg.circle(x(point.x), y(point.y), 2, "#5b93d4");
  std::vector<std::size_t> front_rows;
  std::copy_if(front.rows.begin(), front.rows.end(), std::back_inserter(front_rows), drawable);
  std::string line;
  for (const std::size_t row : front_rows)
    line += fmt::format("{}{:.2f},{:.2f}", line.empty() ? "" : " ", x(front.cost->number_at(row) * cost.factor),
                        y(report.throughput->number_at(row) * gain.factor));
  svg.polyline(line, "bad");
  const Axes axes(*report.results);
  for (const std::size_t row : front_rows)
    svg.circle(x(front.cost->number_at(row) * cost.factor), y(report.throughput->number_at(row) * gain.factor), 4,
               "bad", axes.layout(row));
  return svg.finish();
}

/// The value of one curve of a closing gap; NaN where it has none.
using ClosingCurve = double ClosingStep::*;

/// Returns the points of a curve that stays level until the next experiment was simulated, and jumps there.
std::string staircase(const std::vector<ClosingStep>& closing, ClosingCurve curve,
                      const std::function<double(double)>& x, const std::function<double(double)>& y) {
  std::string line;
  double level = std::nan("");
  for (const ClosingStep& step : closing) {
    const double value = step.*curve, at = x(static_cast<double>(step.simulated));
    if (std::isfinite(level)) line += fmt::format(" {:.2f},{:.2f}", at, y(level));
    if (std::isfinite(value) && value != level) line += fmt::format(" {:.2f},{:.2f}", at, y(value));
    level = value;
  }
  return line.substr(line.empty() ? 0 : 1);
}

/// What was known and what was open, by the number of experiments that were simulated.
std::string closing_gap(const BestProof& proof) {
  constexpr double kHeight = 340, kLeft = 80;
  const Unit unit = unit_of(*proof.objective.column, proof.objective.column->name);
  double low = proof.last, high = proof.last;
  for (const ClosingStep& step : proof.closing)
    for (const double value : {step.known, step.open})
      if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  const AxisTicks x_ticks = round_ticks(0, static_cast<double>(proof.closing.back().simulated), kTicks),
                  y_ticks = round_ticks(low * unit.factor, high * unit.factor, kTicks);
  const auto x = [&](double value) {
    return kLeft + (kWidth - kRight - kLeft) * (value - x_ticks.first) / (x_ticks.last - x_ticks.first);
  };
  const auto y = [&](double value) {
    return kHeight - kBottom -
           (kHeight - kBottom - kTop) * (value * unit.factor - y_ticks.first) / (y_ticks.last - y_ticks.first);
  };
  Svg svg(kWidth, kHeight);
  draw_x_axis(svg, x_ticks, x, kTop, kHeight - kBottom);
  for (double at = y_ticks.first; at <= y_ticks.last + y_ticks.step / 2; at += y_ticks.step) {
    svg.line(kLeft, y(at / unit.factor), kWidth - kRight, y(at / unit.factor), "grid");
    svg.text(kLeft - 8, y(at / unit.factor) + 4, fmt::format("{:.6g}", at), Svg::Anchor::end, "quiet");
  }
  svg.text((kLeft + kWidth) / 2, kHeight - kBottom + 34, "experiments simulated, the best bound first",
           Svg::Anchor::middle, "quiet");
  svg.text(10, 16,
           fmt::format("{}; red: the last of the best {} known; blue: the best bound of all others", unit.axis_title,
                       proof.best),
           Svg::Anchor::start, "quiet");
  svg.polyline(staircase(proof.closing, &ClosingStep::open, x, y), "accent");
  svg.polyline(staircase(proof.closing, &ClosingStep::known, x, y), "bad");
  return svg.finish();
}

std::string effect(const Report& report, const AxisEffect& axis_effect) {
  const Unit unit = unit_of(*report.objective.column, report.objective.column->name);
  std::vector<const AxisValue*> values;
  for (const AxisValue& value : axis_effect.values)
    if (value.ran > 0 && values.size() < kMaxValues) values.push_back(&value);
  double low = values.front()->lower, high = values.front()->upper;
  std::vector<std::string> names;
  for (const AxisValue* value : values) {
    low = std::min({low, value->lower, value->best}), high = std::max({high, value->upper, value->best});
    names.push_back(shortened(value->value));
  }
  RowChart picture(names, low * unit.factor, high * unit.factor, unit.axis_title, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = [&](double value) { return picture.x(value * unit.factor); };
    picture.svg.rectangle(x(values[i]->lower), picture.y(i), std::max(1.0, x(values[i]->upper) - x(values[i]->lower)),
                          kBar, "#5b93d4");
    picture.svg.circle(x(values[i]->median), picture.y(i) + kBar / 2, 4, "ink");
    picture.svg.circle(x(values[i]->best), picture.y(i) + kBar / 2, 4, "bad");
  }
  picture.svg.text(10, 16, "bar: the middle half; dark: median; red: best", Svg::Anchor::start, "quiet");
  return picture.svg.finish();
}

std::string accuracy(const Report& report) {
  std::vector<std::string> names;
  double low = 0, high = 0;
  for (const FamilyError& error : report.errors) {
    names.push_back(shortened(error.residuals.family));
    low = std::min(low, error.residuals.steps.front()), high = std::max(high, error.residuals.steps.back());
  }
  RowChart picture(names, 100 * low, 100 * high, "measured over predicted step time, less 1, %", 0);
  for (std::size_t i = 0; i < report.errors.size(); ++i) {
    const auto& steps = report.errors[i].residuals.steps;
    const double from = picture.x(100 * steps.front());
    picture.svg.rectangle(from, picture.y(i) + 4, std::max(1.0, picture.x(100 * steps.back()) - from), kBar - 8,
                          "#5b93d4");
    for (const double off : steps) picture.svg.circle(picture.x(100 * off), picture.y(i) + kBar / 2, 3, "ink");
  }
  return picture.svg.finish();
}

}  // namespace

std::string draw_svg(const Report& report, const Picture& picture) {
  switch (picture.kind) {
    case Picture::Kind::breakdown:
      return breakdown(report);
    case Picture::Kind::pareto:
      return pareto(report, report.fronts.at(picture.index));
    case Picture::Kind::effect:
      return effect(report, report.effects.at(picture.index));
    case Picture::Kind::accuracy:
      return accuracy(report);
    case Picture::Kind::proof:
      return report.proof ? closing_gap(*report.proof) : std::string();
  }
  return {};
}

}  // namespace manyworlds::io
