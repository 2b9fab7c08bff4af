// Searches that need no gradient, over boxes of numbers with steps, within limits: differential evolution (Storn and
// Price, 1997) and then a compass search (Kolda, Lewis and Torczon, SIAM Review 2003); and what they must be better
// than: as many random draws, and an even split of one resource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace manyworlds::farm::design {

using Point = std::vector<double>;  // a value for each dimension

/// The values low, low + step, ... up to high.
struct Dimension {
  std::string name;
  double low = 0, high = 0, step = 1;  // low <= high, step > 0

  std::int64_t steps() const;  // from the lowest value to the highest
  double value(std::int64_t index) const;
};

struct Problem {
  std::vector<Dimension> dimensions;  // at least one
  /// Whether a point is within all limits. The lowest corner must be.
  std::function<bool(const Point&)> fits;
  /// Returns what is to be small, for several points that fit; infinity for one that cannot be used. Must not depend on
  /// what is asked beside it.
  std::function<std::vector<double>(const std::vector<Point>&)> costs;
};

Point lowest_corner(const Problem& problem);

/// Returns the point that many steps above the lowest corner, `shares` of the way to the highest one by dimension, if
/// it fits; otherwise the farthest that does on the straight line to the lowest corner.
Point fitting_point(const Problem& problem, const std::vector<double>& shares);

struct Found {
  Point best;                 // of the best cost; the first of equal ones
  double cost = 0;            // infinity if no point can be used
  std::size_t evaluated = 0;  // points whose costs were asked for, repeated ones included
};

/// Evaluates `evaluations` points (at least 8): seven in ten by differential evolution, the others around its best.
/// Every point fits. The same for the same seed.
Found optimise(const Problem& problem, std::uint64_t seed, std::size_t evaluations);

/// Evaluates as many points that are drawn evenly, each drawn to the lowest corner until it fits.
Found draw(const Problem& problem, std::uint64_t seed, std::size_t evaluations);

/// Returns the point where each dimension alone takes an even part of what is left of a resource, of which `use` says
/// how much a point takes and `limit` how much there is; drawn to the lowest corner until it fits. Dimensions that take
/// none are at their highest.
Point even_split(const Problem& problem, const std::function<double(const Point&)>& use, double limit);

}  // namespace manyworlds::farm::design
