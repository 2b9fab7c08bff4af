// Pictures as SVG: shapes in the order they are drawn, lengths in pixels, text escaped. Pictures follow the reader's
// light or dark theme, and the same calls give the same bytes.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace manyworlds::io {

class Svg {
 public:
  enum class Anchor { start, middle, end };

  Svg(double width, double height) : width_(width), height_(height) {}

  /// `paint`: a colour, or one of the classes ground, ink, quiet, grid, accent, bad.
  void rectangle(double x, double y, double width, double height, std::string_view paint, std::string_view title = "");
  void circle(double x, double y, double radius, std::string_view paint, std::string_view title = "");
  void line(double x1, double y1, double x2, double y2, std::string_view paint);
  /// Draws areas from SVG path data; their edges are snapped to whole pixels.
  void path(std::string_view data, std::string_view paint);
  void polyline(std::string_view points, std::string_view paint);
  void text(double x, double y, std::string_view text, Anchor anchor = Anchor::start, std::string_view paint = "ink");

  std::string finish() const;

 private:
  double width_, height_;
  std::string body_;
};

/// Returns round numbers from at most `low` to at least `high`, in about `count` steps.
struct AxisTicks {
  double first = 0, step = 1, last = 1;
};
AxisTicks round_ticks(double low, double high, int count);

}  // namespace manyworlds::io
