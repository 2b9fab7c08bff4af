// GPUs without library figures of their own take those of the calibrated GPU whose link is nearest in speed.
#pragma once

#include "experiments/config/world.hpp"
#include "experiments/settings/catalog.hpp"

namespace manyworlds::experiments {

/// Where protocol `calibrated` is asked for and the GPU has no library_launch_us: fills in what is absent, rates scaled
/// by the links' speed, and says in cluster.gpu.library_from whose they are. Returns the key of a figure that a
/// calibrated GPU lacks, or of library_launch_us where nobody lends; empty if all is there.
std::string lend_calibration(Settings& settings, const Catalog& catalog);

/// Whether an option of a GPU is one of its communication library's.
bool is_library_figure(const std::string& option);

/// For tables and people: "no", "yes", or whose figures they are.
std::string describe_calibration(const core::collective::Library& library);

}  // namespace manyworlds::experiments
