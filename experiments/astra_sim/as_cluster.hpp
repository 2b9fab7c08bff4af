// What of our own clusters is nearest to a network of ASTRA-sim.
#pragma once

#include <string>

#include "experiments/astra_sim/files/network_file.hpp"

namespace manyworlds::experiments::astra_sim {

/// Returns one line for whoever reads the programs: the keys of a spec whose network has the same ranks, rates and
/// latencies, as YAML; or that there is none, with what is nearest.
std::string as_cluster(const Network& network);

}  // namespace manyworlds::experiments::astra_sim
