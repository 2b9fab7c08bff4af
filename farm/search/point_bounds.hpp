// How good points of a space can be, and how good one is without contention.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/step/estimate/best_stages.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/analysis/uncertainty.hpp"
#include "experiments/sweep/space.hpp"

namespace manyworlds::farm {

struct PointBound {
  double objective = 0;  // the best, minimised, of all that the point stands for; infinity: nothing is valid and fits
  double points = 0;     // that it stands for, valid or not
};

/// Computes bounds of points of a space, which must outlive it, for one thread.
class PointBounds {
 public:
  explicit PointBounds(const experiments::Space& space);

  /// Returns the bounds of some of the points. Throws InputError, naming the key, for one whose stages are fixed though
  /// axes say that they may be any.
  std::vector<PointBound> of(const std::vector<experiments::Space::Point>& points, std::size_t begin, std::size_t end);
  /// Returns what excludes a point, for people; empty if it is valid.
  std::string why_excluded(const experiments::Space::Point& point) { return viewer_.why_excluded(point); }
  /// Returns what is best for the stages of a point, of which nothing else is open and which has a bound.
  core::step::BestStages best_stages_of(const experiments::Space::Point& point);
  /// Returns the minimised objective of the analytic step of a point without open factors.
  double analytic_value_of(const experiments::Space::Point& point);

 private:
  std::optional<core::Time> least_step(const core::step::Configuration& configuration,
                                       const experiments::OpenKeys& open);
  std::vector<double> values_of(const std::vector<core::step::StepResult>& steps) const;
  void add_row(experiments::Experiment experiment);

  const experiments::Space& space_;
  experiments::Space::Viewer viewer_;
  experiments::Sweep rows_;
  experiments::Uncertainty uncertainty_ = experiments::Uncertainty::compiled();
  core::step::LowerBounds lower_bounds_;
  core::step::SimulationContext context_;
  core::step::IsolatedResults known_;
};

}  // namespace manyworlds::farm
