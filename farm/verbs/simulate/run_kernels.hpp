// What `manyworlds run` says of an experiment's kernels without simulating it.
#pragma once

#include <optional>
#include <string>

#include "experiments/sweep/sweep_reader.hpp"

namespace manyworlds::farm::commands {

/// Prints the kernels, submodules or layers of the experiment as a table that cluster.gpu.measured_kernels accepts;
/// with a file of AIOB's times, those that it has, with its times.
int show_kernels(const experiments::Sweep& sweep, const std::string& level, const std::string& aiob_file);

/// Prints the times of its kernels by each source alone; and beside them those of `other`, the experiment under another
/// stack, if it is given.
int show_totals(const experiments::Sweep& sweep, const std::optional<experiments::Sweep>& other, bool json);

}  // namespace manyworlds::farm::commands
