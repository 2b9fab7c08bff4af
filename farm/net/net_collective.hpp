// The collective that `manyworlds net` runs over all GPUs: the named algorithm, or the one that the library chooses.
#pragma once

#include <string>

#include "core/collective/algorithms/communicator.hpp"
#include "core/collective/dag/dag.hpp"
#include "core/step/layout/configuration.hpp"

namespace manyworlds::farm {

/// Returns the collective `kind` over all GPUs; member i is GPU i. A non-empty `algorithm` overrides that of
/// `configuration`. Throws core::InputError for unknown names, for combinations that are not possible, and for fewer
/// than two GPUs.
core::collective::Shape collective_of(const core::step::Configuration& configuration, const std::string& kind,
                                      const std::string& algorithm, std::int64_t bytes);

/// Returns what chose its algorithm where the configuration has a tuner's table: a line of it, the library or
/// `algorithm`; empty without a table. Throws as collective_of().
std::string tuner_of(const core::step::Configuration& configuration, const std::string& kind,
                     const std::string& algorithm, std::int64_t bytes);

/// Returns all GPUs as the members of a collective. `configuration` must have its graph.
core::collective::Communicator communicator_of_all(const core::step::Configuration& configuration);

}  // namespace manyworlds::farm
