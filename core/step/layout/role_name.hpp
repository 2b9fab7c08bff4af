// What people are told of a role: its name, or that of the given programs' dimension.
#pragma once

#include <string>

#include "core/step/layout/configuration.hpp"

namespace manyworlds::core::step {

/// Returns the name of a role of the configuration's programs. Throws std::out_of_range for one that they do not have.
inline std::string role_name(const Configuration& configuration, workload::Role role) {
  if (!workload::is_of_dimension(role)) return workload::kRoleNames.at(static_cast<std::size_t>(role));
  return configuration.programs->ranks->dimensions.at(workload::dimension_of(role)).name;
}

}  // namespace manyworlds::core::step
