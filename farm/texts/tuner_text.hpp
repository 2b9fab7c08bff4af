// What rules of the user chose, as one line of text.
#pragma once

#include <string>
#include <vector>

#include "core/step/compile/tuner_choices.hpp"

namespace manyworlds::farm {

/// Returns "ring.xml: 1 all_reduce; line 4: 2 all_reduce; line 9: 1 all_gather; the library: 1 reduce_scatter"; empty
/// for no choices.
std::string tuner_text(const std::vector<core::step::TunerChoice>& choices);

}  // namespace manyworlds::farm
