#include "farm/validation/validation_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/escape.hpp"

namespace manyworlds::farm {
namespace {

constexpr double kPlotSide = 640, kLeft = 70, kTop = 30, kLegend = 330, kLine = 17;

// The colour-blind safe palette of Okabe and Ito, then darker variants.
constexpr const char* kColours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9",
                                    "#000000", "#b3a200", "#004c78", "#9a6a00", "#00664b", "#8e3f00"};

/// Range of decades that contains all times.
struct Scale {
  int first = 0, last = 1;
  double place(double seconds) const { return (std::log10(seconds) - first) / (last - first); }
  double x(double measured_s) const { return kLeft + kPlotSide * place(measured_s); }
  double y(double predicted_s) const { return kTop + kPlotSide * (1 - place(predicted_s)); }
};

Scale scale_of(const std::vector<ComparedRow>& rows) {
  if (rows.empty()) return {};
  double min_s = rows.front().measured, max_s = min_s;
  for (const ComparedRow& row : rows) {
    min_s = std::min({min_s, row.measured, row.predicted});
    max_s = std::max({max_s, row.measured, row.predicted});
  }
  Scale scale{static_cast<int>(std::floor(std::log10(min_s))), static_cast<int>(std::ceil(std::log10(max_s)))};
  if (scale.last == scale.first) ++scale.last;
  return scale;
}

std::string line_element(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}

std::string text_element(double x, double y, const std::string& text, const char* anchor = "start") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     core::escape_html(text));
}

std::string frame(const Scale& scale) {
  std::string svg;
  for (int decade = scale.first; decade <= scale.last; ++decade) {
    const double seconds = std::pow(10.0, decade);
    svg += line_element(scale.x(seconds), kTop, scale.x(seconds), kTop + kPlotSide, "stroke=\"#ddd\"");
    svg += line_element(kLeft, scale.y(seconds), kLeft + kPlotSide, scale.y(seconds), "stroke=\"#ddd\"");
    svg += text_element(scale.x(seconds), kTop + kPlotSide + 18, fmt::format("{:g}", seconds), "middle");
    svg += text_element(kLeft - 8, scale.y(seconds) + 4, fmt::format("{:g}", seconds), "end");
  }
  svg += text_element(kLeft + kPlotSide / 2, kTop + kPlotSide + 38, "measured step, s", "middle");
  svg += text_element(kLeft, kTop - 12, "predicted step, s; dashed: 10 % off");
  const double low = std::pow(10.0, scale.first), high = std::pow(10.0, scale.last);
  svg += line_element(scale.x(low), scale.y(low), scale.x(high), scale.y(high), "stroke=\"#888\"");
  const char* dashed = "stroke=\"#888\" stroke-dasharray=\"4 4\"";
  svg += line_element(scale.x(low), scale.y(low * 1.1), scale.x(high / 1.1), scale.y(high), dashed);
  svg += line_element(scale.x(low * 1.1), scale.y(low), scale.x(high), scale.y(high / 1.1), dashed);
  return svg;
}

}  // namespace

std::string validation_picture(const std::vector<ComparedRow>& rows) {
  std::vector<std::string> families;
  for (const ComparedRow& row : rows)
    if (std::find(families.begin(), families.end(), row.family) == families.end()) families.push_back(row.family);
  const auto colour = [&](const std::string& family) {
    const auto at = std::find(families.begin(), families.end(), family) - families.begin();
    return kColours[static_cast<std::size_t>(at) % std::size(kColours)];
  };
  const Scale scale = scale_of(rows);
  const double height = kTop + std::max(kPlotSide + 50, kLine * static_cast<double>(families.size() + 1));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kLeft + kPlotSide + kLegend, height);
  svg += frame(scale);
  for (const ComparedRow& row : rows)
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" fill-opacity=\"{}\"/>\n",
                       scale.x(row.measured), scale.y(row.predicted), colour(row.family),
                       row.excluded_from_family ? "0.25" : "0.7");
  for (std::size_t i = 0; i < families.size(); ++i) {
    const double y = kTop + kLine * static_cast<double>(i + 1);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", kLeft + kPlotSide + 18, y - 4,
                       colour(families[i]));
    svg += text_element(kLeft + kPlotSide + 28, y, families[i]);
  }
  return svg + "</svg>\n";
}

}  // namespace manyworlds::farm
