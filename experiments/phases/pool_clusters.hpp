// The part of a cluster that a pool of phases has.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/phase_files/phase_settings.hpp"
#include "experiments/phase_files/phases_file.hpp"

namespace manyworlds::experiments::phases {

/// Returns all GPUs of a cluster; 0 without one.
std::int64_t gpus_of(const Settings& settings);

/// Returns "1 GPU", "2 GPUs".
std::string counted(std::int64_t count, const char* what);

/// Throws InputError at a place, with the phase's name.
[[noreturn]] void fail_at(const Phase& phase, const import::Node& at, const std::string& what);

/// Returns the change of a cluster to so many of its GPUs, which are whole nodes or a part of one that divides it.
/// Throws InputError at the phase's pool if they cannot be taken.
DerivedSettings part_of_cluster(const PhasesFile& file, const Phase& phase, const Settings& settings,
                                std::int64_t gpus);

/// The same for the GPUs of the phase's pool; empty if it has no others. Throws InputError also where the phase itself
/// has a cluster of another size.
DerivedSettings cluster_of_pool(const PhasesFile& file, const Phase& phase, const WrittenSettings& written,
                                std::int64_t gpus);

/// Returns how many replicas the phase's strategy makes of its pool. Throws InputError unless they fill it.
std::int64_t replicas_on(const PhasesFile& file, const Phase& phase, const WrittenSettings& written, std::int64_t gpus);

}  // namespace manyworlds::experiments::phases
