// The collective that `manyworlds net` runs over all GPUs: by name, or as the library of the document chooses.
#pragma once

#include <string>

#include "core/collective/dag/dag.hpp"
#include "core/step/world/configuration.hpp"

namespace manyworlds::farm {

/// `algorithm` (may be empty: the document's) goes before what `world` says. Member i is GPU i. Throws InputError for
/// names that do not exist or do not go together, and for fewer than two GPUs.
core::collective::Shape collective_of(const core::step::Configuration& world, const std::string& kind,
                                      const std::string& algorithm, std::int64_t bytes);

}  // namespace manyworlds::farm
