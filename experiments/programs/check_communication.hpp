// Whether the members of communicators do the same in them.
#pragma once

#include <string>
#include <vector>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::programs {

/// Throws InputError, naming `name`, the group, the ranks and the operation, unless the n-th operations of all members
/// of each group are the same, and all in a pair that is sent is received. `lines_of_groups` are those of `name` in
/// which the groups stand; empty: none. Dimensions and ranks must be valid.
void check_communication(const StreamPrograms& programs, const std::string& name,
                         const std::vector<int>& lines_of_groups = {});

}  // namespace manyworlds::experiments::programs
