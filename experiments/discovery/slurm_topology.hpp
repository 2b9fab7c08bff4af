// Slurm's topology.conf: a tree of switches, or blocks of nodes. It has no rates and no numbers of cables.
#pragma once

#include <string>
#include <string_view>

#include "experiments/clusters/fabric.hpp"

namespace manyworlds::experiments::clusters {

bool is_slurm_topology(std::string_view text);

/// Returns the fabric, which does not count cables; `name` is the file name in messages. Throws InputError, with the
/// line, for an unknown key, a switch or node that is defined twice or nowhere, and a circle of switches.
Fabric parse_slurm_topology(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::clusters
