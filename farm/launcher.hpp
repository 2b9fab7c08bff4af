// How ranks are started, which differs between MPI libraries: by the launcher of the one this program was built with.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace manyworlds::farm {

/// Its path in PATH, or nothing.
std::optional<std::string> find_launcher();
/// What people call it: "mpirun", "mpiexec".
std::string launcher_name();

/// The words that start `ranks` processes of what is appended to them, such that the death of one spares the others.
std::vector<std::string> launch_words(const std::string& launcher, int ranks);
/// What it needs in the environment of the process that becomes it; what is set there already stays.
void set_launch_environment();

/// The variables that hold a rank's number when this launcher, or srun, started the process.
const std::vector<std::string>& rank_variables();

/// "Open MPI 4.1.4", "MPICH 4.0.2".
std::string mpi_version();

}  // namespace manyworlds::farm
