// Groups whose collectives may have algorithms of their own: the sections below `collectives`.
#pragma once

#include <string>
#include <vector>

#include "core/workload/program/program.hpp"

namespace manyworlds::experiments {

/// The communicators of these roles, and what users call them.
struct CollectiveGroup {
  std::string name, help;
  std::vector<core::workload::Role> roles;
};
const std::vector<CollectiveGroup>& collective_groups();

}  // namespace manyworlds::experiments
