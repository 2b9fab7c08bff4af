// Why a selection selects nothing.
#pragma once

#include <string>
#include <vector>

#include "experiments/edits/edit.hpp"

namespace manyworlds::experiments::edits {

/// Returns what of a selection that selects nothing of some programs, given by their numbers, leaves nothing: its first
/// key whose pattern none of the operations has that are of the keys before it, and the nearest of what these have.
std::string nothing_selected(const programs::StreamPrograms& programs, const std::vector<std::size_t>& numbers,
                             const Selection& selection);

}  // namespace manyworlds::experiments::edits
