// What predictions are worth to somebody who chooses a layout: of each group of measured alternatives the one that is
// predicted best, and of each layout whether it runs at all.
#pragma once

#include <string>
#include <vector>

#include "experiments/measured/training_steps.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

/// Groups of fewer layouts are no choice worth a figure.
inline constexpr std::size_t kMinLayouts = 10;
/// A pick is good if its measured time is at most this share above that of the best.
inline constexpr double kGoodPick = 0.1;

/// The layouts of one family, model, number of GPUs and batch.
struct LayoutChoice {
  std::string family, name;
  std::size_t measured = 0, compared = 0;  // layouts with a measured time, and those of them that were simulated
  RankingAccuracy ranking;                 // of this group alone; the pick is one that is predicted to fit
};

/// How often it is predicted right whether a layout fits into memory and runs.
struct RunVerdicts {
  std::string family;
  std::size_t ran = 0, ran_right = 0;        // layouts that ran, and those of them that were predicted to
  std::size_t failed = 0, failed_right = 0;  // those that did not, as well

  double share() const { return static_cast<double>(ran_right + failed_right) / static_cast<double>(ran + failed); }
};

/// Returns the groups with at least kMinLayouts compared layouts, in order of first appearance.
std::vector<LayoutChoice> layout_choices(const std::vector<experiments::measured::TrainingStep>& steps,
                                         const Comparison& comparison);

/// Returns the share of choices in which the pick is good.
double good_picks(const std::vector<LayoutChoice>& choices);

/// Returns the verdicts of the families whose tables tell which layouts did not run.
std::vector<RunVerdicts> run_verdicts(const std::vector<experiments::measured::TrainingStep>& steps);

}  // namespace manyworlds::farm
