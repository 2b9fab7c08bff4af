// The ids of what runs programs.
#pragma once

#include "core/base/id.hpp"

namespace manyworlds::core::workload {

/// A rank that is simulated, for itself alone or for all ranks that are equivalent to it, in the order of the ranks.
using RepresentativeId = Id<struct RepresentativeTag>;

}  // namespace manyworlds::core::workload
