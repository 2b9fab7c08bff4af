// Pictures as SVG: shapes in the order they are drawn, lengths in pixels, text escaped. They are light or dark as the
// reader's system is, and the same calls make the same bytes.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace manyworlds::io {

/// Colours that can be told apart in light and dark, for the parts of a step in the order of kBreakdown.
inline constexpr std::array kPartColours{"#2f6db3", "#6fa8e6", "#17a2a2", "#8a7fd6", "#9aa0a6", "#c9a227", "#d1603d",
                                         "#b0413e", "#e8a15c", "#c77dbb", "#8c4f9f", "#8fb39a", "#57a773", "#7a6048"};

class Svg {
 public:
  enum class Anchor { start, middle, end };

  Svg(double width, double height) : width_(width), height_(height) {}

  /// `paint`: a colour, or one of the classes ground, ink, quiet, grid, accent, bad.
  void rectangle(double x, double y, double width, double height, std::string_view paint, std::string_view title = "");
  void circle(double x, double y, double radius, std::string_view paint, std::string_view title = "");
  void line(double x1, double y1, double x2, double y2, std::string_view paint);
  /// Areas by their path data, whose edges lie on whole pixels as they are shown.
  void path(std::string_view data, std::string_view paint);
  void polyline(std::string_view points, std::string_view paint);
  void text(double x, double y, std::string_view text, Anchor anchor = Anchor::start, std::string_view paint = "ink");

  std::string finish() const;

 private:
  double width_, height_;
  std::string body_;
};

/// Round numbers from at most `low` to at least `high`, about `count` steps apart.
struct Steps {
  double first = 0, step = 1, last = 1;
};
Steps round_steps(double low, double high, int count);

}  // namespace manyworlds::io
