// Programs with edits made.
#pragma once

#include <string>
#include <vector>

#include "experiments/edits/edit.hpp"

namespace manyworlds::experiments::edits {

/// Makes the edits one after the other. Returns an account: a line for each, with how many operations it changed and
/// what these take before and after, in microseconds and bytes of all ranks together. Throws core::InputError with the
/// line of an edit that selects nothing or cannot be made, and for ranks that do not communicate alike afterwards.
std::vector<std::string> make_edits(programs::StreamPrograms& programs, const Edits& edits);

}  // namespace manyworlds::experiments::edits
