// The pipeline schedule of a step as a picture: a row for each pipeline stage, time from left to right, and the
// composition of each pass.
#pragma once

#include <string>

#include "core/step/run/recording.hpp"

namespace manyworlds::io {

/// Returns an SVG that follows the reader's light or dark theme. `recording` has the ranks to show, in the order of the
/// rows. The width of a pass is its duration, and its colours share its height in proportion to their times: the area
/// of a colour is its time. Sections narrower than a pixel are joined with their neighbours. The same step gives the
/// same bytes.
std::string schedule_picture(const core::step::CompiledStep& compiled, const core::step::Recording& recording,
                             const std::string& title);

}  // namespace manyworlds::io
