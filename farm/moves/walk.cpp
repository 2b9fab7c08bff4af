#include "farm/moves/walk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "farm/best/minimised_objective.hpp"
#include "farm/system/slices.hpp"

namespace manyworlds::farm {
namespace {

using experiments::Space;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Walk::Walk(Space& space, const Simulated& simulated, const WalkLimits& limits)
    : space_(space), limits_(limits), neighbourhood_(space), workers_(space), draws_(limits.seed) {
  MANYWORLDS_CHECK(!simulated.empty(), "a walk begins at one of {} points", simulated.size());
  for (const auto& [position, value] : simulated) {
    met_.insert(position);
    open_.emplace(value, position);
  }
  current_ = best_ = *open_.begin();
}

/// Returns a threshold in proportion to the moves that are left.
double Walk::falling_threshold() const {
  const std::uint64_t left = limits_.moves - std::min(counts_.drawn, limits_.moves);
  return limits_.threshold * static_cast<double>(left) / static_cast<double>(limits_.moves);
}

std::vector<Space::Point> Walk::points_of(const std::vector<Position>& positions, Space& space) {
  std::vector<Space::Point> points;
  points.reserve(positions.size());
  for (const Position& one : positions) points.push_back(neighbourhood_.point_of(one, space));
  return points;
}

std::vector<Position> Walk::draw() {
  threshold_ = falling_threshold();
  limit_ = better_by(current_.first, -threshold_);
  const std::uint64_t last = std::min(limits_.moves, counts_.drawn + limits_.round_moves);
  std::vector<Position> round;
  while (round.size() < limits_.at_once && counts_.drawn < last && !stuck_) {
    const std::uint64_t wanted = std::min<std::uint64_t>(limits_.at_once - round.size(), last - counts_.drawn);
    for (Position& one : within_limit(draw_new(wanted))) round.push_back(std::move(one));
  }
  return round;
}

/// Draws so many neighbours of the current point, and returns those that were not met before.
std::vector<Position> Walk::draw_new(std::uint64_t moves) {
  std::vector<Position> drawn;
  for (std::uint64_t i = 0; i < moves; ++i) {
    std::optional<Neighbour> next = neighbourhood_.neighbour(current_.second, draws_);
    stuck_ = !next.has_value();
    if (stuck_) break;
    ++counts_.drawn;
    if (next->refusal != Refusal::none)
      ++(next->refusal == Refusal::memory ? counts_.too_large : counts_.excluded);
    else if (const auto known = behind_.find(next->position); known != behind_.end() && is_behind(known->second.value))
      count_behind(known->second);
    else if (!met_.insert(next->position).second)
      ++counts_.met;
    else
      drawn.push_back(std::move(next->position));
  }
  return drawn;
}

bool Walk::is_behind(double bound) const {
  return bound > limit_ + kObjectiveRounding * std::abs(limit_);
}

/// Returns those that are valid and fit, and that no lower bound shows to be behind the limit. What is left out for its
/// bound may be drawn again when the limit is another.
std::vector<Position> Walk::within_limit(std::vector<Position> positions) {
  const std::vector<Space::Point> points = points_of(positions, space_);
  std::vector<Bound> bounds(points.size());
  std::vector<Refusal> refusals(points.size(), Refusal::none);
  const auto look_at = [&](PointBounds& worker, std::size_t i) {
    const double sums = worker.of(points, i, i + 1).front().objective;
    if (sums == kInfinity)
      refusals[i] = worker.why_excluded(points[i]).empty() ? Refusal::memory : Refusal::excluded;
    else if (is_behind(sums))
      bounds[i] = {sums, true};
    else
      bounds[i] = {std::max(sums, worker.analytic_value_of(points[i])), false};
  };
  for_each_slice(
      points.size(),
      [&](std::size_t begin, std::size_t end) {
        workers_.with_worker([&](PointBounds& worker) {
          for (std::size_t i = begin; i < end; ++i) look_at(worker, i);
        });
      },
      1);
  std::vector<Position> open;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (refusals[i] != Refusal::none) {
      ++(refusals[i] == Refusal::memory ? counts_.too_large : counts_.excluded);
    } else if (is_behind(bounds[i].value)) {
      count_behind(bounds[i]);
      met_.erase(positions[i]);
      behind_[std::move(positions[i])] = bounds[i];
    } else {
      open.push_back(std::move(positions[i]));
    }
  }
  return open;
}

void Walk::settle(const std::vector<Position>& drawn, const std::vector<double>& values) {
  MANYWORLDS_CHECK(drawn.size() == values.size(), "{} values of {} points", values.size(), drawn.size());
  counts_.simulated += drawn.size();
  for (std::size_t i = 0; i < drawn.size(); ++i)
    if (values[i] == kInfinity)
      ++counts_.failed;
    else
      open_.emplace(values[i], drawn[i]);
  ++rounds_since_;
  if (const auto least = std::min_element(values.begin(), values.end()); least != values.end() && *least <= limit_) {
    current_ = {*least, drawn[static_cast<std::size_t>(least - values.begin())]};
    ++counts_.accepted;
    if (current_.first < best_.first) best_ = current_, rounds_since_ = 0;
  }
  if (drawn.empty()) open_.erase(current_);
  if (drawn.empty() || rounds_since_ >= limits_.patience) go_back();
}

/// Goes on from the best point that has neighbours left.
void Walk::go_back() {
  rounds_since_ = 0;
  stuck_ = stuck_ || open_.empty();
  if (stuck_ || current_ == *open_.begin()) return;
  current_ = *open_.begin();
  ++counts_.returns;
}

}  // namespace manyworlds::farm
