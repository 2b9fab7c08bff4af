// The interval of a step time for a user who has measured steps of their own: published errors say how far off a new
// family may be, the user's own how far off theirs is. docs/model/uncertainty.md has the rule.
#pragma once

#include <string>
#include <vector>

#include "experiments/analysis/own_steps.hpp"
#include "experiments/analysis/uncertainty.hpp"

namespace manyworlds::experiments {

/// Student's t distribution with an integer number of degrees of freedom, from its closed form (Abramowitz and Stegun
/// 1964, 26.7.3 and 26.7.4).
double student_t_share(double t, std::size_t degrees);
/// Its inverse for a share above one half and below 1.
double student_t_quantile(double share, std::size_t degrees);

/// The predictive distribution of the logarithm of measured over predicted time: Student's t.
struct OwnInterval {
  std::size_t experiments = 0, rows = 0;  // own measurements: different experiments, and all rows of them
  double low = 1, high = 1;               // factors of the predicted step time
  double center = 0, scale = 0;           // of the logarithm
  std::size_t degrees = 1;

  /// Returns how much of the distribution is at or below a ratio of measured over predicted time.
  double share_below(double ratio) const;
};

/// The published scatter within a family counts as an estimate of so many degrees of freedom: families differ in their
/// scatter, and with these four of five further runs of a published family lie in the interval that some of its runs
/// and all other families give (docs/model/uncertainty.md).
inline constexpr std::size_t kScatterDegrees = 2;

/// Returns the random-effects prediction (Higgins, Thompson and Spiegelhalter 2009, section 4) from the published
/// interval as the distribution of a family's offset, the usual scatter within a family, and the logarithms of measured
/// over predicted time of the user's experiments, of which there is at least one.
OwnInterval own_interval(const Interval& published, const Uncertainty::Scatter& scatter,
                         const std::vector<double>& own_logs);

/// What a user's table tells of an experiment.
struct OwnEvidence {
  std::vector<double> logs;  // of measured over predicted time, one for each different experiment
  std::size_t rows = 0;      // that these are of
  std::size_t outdated = 0;  // rows that fit, but whose prediction is of another version of the program
};

/// Returns the rows of the experiment's chip, kind of layout and software, by experiment. Rows of `leaving_out` do not
/// count: a measurement must not vouch for itself.
OwnEvidence own_evidence(const std::vector<OwnStep>& steps, const Interval& published, const std::string& stack,
                         const std::string& leaving_out = {});

}  // namespace manyworlds::experiments
