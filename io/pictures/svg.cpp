#include "io/pictures/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/escape.hpp"

namespace manyworlds::io {
namespace {

constexpr const char* kStyle =
    "text{font:12px "
    "system-ui,sans-serif}rect,circle,text,path{fill:currentColor}path{shape-rendering:crispEdges}line,polyline{stroke:"
    "currentColor;fill:none}"
    "polyline{stroke-width:1.5}.ground{color:#fff}.ink{color:#1c2330}.quiet{color:#5a6472}.grid{color:#d5dae1}.accent{"
    "color:#1f63b5}.bad{color:#b3403a}@media(prefers-color-scheme:dark){.ground{color:#14181f}.ink{color:#e4e8ee}."
    "quiet{"
    "color:#9aa5b3}.grid{color:#343c48}.accent{color:#6fb0f5}.bad{color:#e5827b}}";

std::string painted(std::string_view paint) {
  return fmt::format("{}=\"{}\"", paint.starts_with('#') ? "color" : "class", paint);
}

std::string titled(std::string_view title) {
  return title.empty() ? "/>\n" : fmt::format("><title>{}</title>", core::escape_html(title));
}

}  // namespace

void Svg::rectangle(double x, double y, double width, double height, std::string_view paint, std::string_view title) {
  body_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}{}", x, y, width, height,
                       painted(paint), titled(title));
  if (!title.empty()) body_ += "</rect>\n";
}

void Svg::circle(double x, double y, double radius, std::string_view paint, std::string_view title) {
  body_ +=
      fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.1f}\" {}{}", x, y, radius, painted(paint), titled(title));
  if (!title.empty()) body_ += "</circle>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view paint) {
  body_ += fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" {}/>\n", x1, y1, x2, y2,
                       painted(paint));
}

void Svg::path(std::string_view data, std::string_view paint) {
  body_ += fmt::format("<path d=\"{}\" {}/>\n", data, painted(paint));
}

void Svg::polyline(std::string_view points, std::string_view paint) {
  body_ += fmt::format("<polyline points=\"{}\" {}/>\n", points, painted(paint));
}

void Svg::text(double x, double y, std::string_view text, Anchor anchor, std::string_view paint) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  body_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
                       kAnchors[static_cast<int>(anchor)], painted(paint), core::escape_html(text));
}

std::string Svg::finish() const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\">\n"
      "<style>{2}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n{3}</svg>\n",
      width_, height_, kStyle, body_);
}

AxisTicks round_ticks(double low, double high, int count) {
  // There are no ticks for infinite ranges, and values that differ only in their last digits need a wider range.
  if (!std::isfinite(high - low)) return {0, 1, 1};
  if (!(high - low > 1e-9 * std::max(std::abs(low), std::abs(high)))) high = low + (low == 0 ? 1 : std::abs(low) * 0.1);
  const double raw = (high - low) / count, scale = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * scale;
  for (const double each : {1.0, 2.0, 2.5, 5.0})
    if (each * scale >= raw) {
      step = each * scale;
      break;
    }
  return {std::floor(low / step + 1e-9) * step, step, std::ceil(high / step - 1e-9) * step};
}

}  // namespace manyworlds::io
