// InfraGraph (Keysight, MLCommons): devices, instances of them, and the cables between these, as YAML in one file or
// several.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/clusters/fabric.hpp"

namespace manyworlds::experiments::clusters {

bool is_infragraph(std::string_view text);

struct InfraGraph {
  Fabric fabric;
  std::int64_t gpus_per_host = 0;
};

/// Reads files that belong together, as pairs of name and text. Hosts are instances of devices with components of type
/// xpu, switches all others. Throws InputError, with file and line, for a reference to nothing and for what it lacks.
InfraGraph parse_infragraph(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace manyworlds::experiments::clusters
