// The schedule of a step's pipeline as a picture: a row for each pipeline rank, time from left to right, and what each
// pass is made of.
#pragma once

#include <string>

#include "core/step/run/recording.hpp"

namespace manyworlds::io {

/// An SVG, light or dark as its reader's system is. `recording` has the ranks to show, in the order of rows. A pass is
/// as wide as it lasts, and its colours share its height as they share its time: the area of a colour is its time. What
/// is narrower than a pixel stands with its neighbours. The same step makes the same bytes.
std::string schedule_picture(const core::step::World& world, const core::step::Recording& recording,
                             const std::string& title);

}  // namespace manyworlds::io
