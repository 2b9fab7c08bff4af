// What a difference between a measured and a predicted step may come from: hypotheses, each with the number that
// supports it. None is a finding.
#pragma once

#include <string>
#include <vector>

#include "farm/check/checked_run.hpp"
#include "farm/texts/step_text.hpp"

namespace manyworlds::farm {

/// Below this difference, as a share of the predicted time, nothing is suggested for time.
inline constexpr double kNoDifference = 0.03;

/// Returns one sentence for each. `row` is of the experiment's simulation.
std::vector<std::string> suggestions_of(const CheckedRun& run, const ResultRow& row,
                                        const experiments::Experiment& experiment);

/// Returns the mean error of peaks of memory of a kind of layout on published runs, as a share (docs/accuracy.md).
double usual_memory_error(const std::string& kind);

}  // namespace manyworlds::farm
