// The files that ASTRA-sim is run with, as programs: a workload of Chakra traces, system.json, network.yml and the
// remote memory file (docs/astra_sim.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/astra_sim/collectives/chunk_times.hpp"
#include "experiments/astra_sim/files/memory_file.hpp"
#include "experiments/astra_sim/files/network_file.hpp"
#include "experiments/astra_sim/files/system_file.hpp"
#include "experiments/chakra/read_traces.hpp"
#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::astra_sim {

/// The files beside the workload.
struct Configuration {
  System system;
  Network network;
  std::optional<Memory> memory;
  CustomAlgorithms custom = {};  // that system.custom names, where they have been read
};

struct Paths {
  std::string system, network, memory;  // empty: none
};

/// What communication becomes: operations that the simulated network carries out; or, with a backend of ASTRA-sim,
/// kernels of the times that this gives them, with waiting for other ranks.
using Communication = std::optional<Congestion>;

/// Returns the traces as programs. The roofline of compute nodes is the system's. With a backend, ranks run as
/// replay() says, and the step is as long as ASTRA-sim's longest rank: its nanoseconds are in the account. Without one
/// the programs are those of chakra::import_traces(), and what the system says of collectives is told and not followed.
/// Throws InputError for what any of these refuses, for a network of another number of ranks than the workload has, and
/// with a backend for what ASTRA-sim would do and is not modelled.
programs::Imported import_astra_sim(const std::vector<chakra::TraceFile>& files, std::string_view groups,
                                    const std::string& what, const Configuration& configuration,
                                    Communication communication, const chakra::TraceOptions& options = {});

/// Reads the files; and with a backend the algorithms that the system file names, which nothing else needs.
Configuration read_configuration(const Paths& paths, Communication communication);

/// Reads PREFIX.0.et, PREFIX.1.et, ... and the files; a single trace stands for all ranks of the network.
programs::Imported read_astra_sim(const std::string& prefix, const Paths& paths, Communication communication,
                                  const chakra::TraceOptions& options = {});

}  // namespace manyworlds::experiments::astra_sim
