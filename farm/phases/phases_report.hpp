// An iteration as text and JSON.
#pragma once

#include <string>

#include "farm/phases/iteration.hpp"

namespace manyworlds::farm::phases {

std::string iteration_text(const experiments::phases::ExpandedPhases& expanded, const Iteration& iteration);
std::string iteration_json(const experiments::phases::ExpandedPhases& expanded, const Iteration& iteration);

}  // namespace manyworlds::farm::phases
