// How MPI ranks are started. This differs between MPI libraries: the launcher belongs to the library that this program
// was built with, or is srun inside a Slurm job.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace manyworlds::farm {

struct Launcher {
  std::string name;                    // the usual name: "mpirun", "mpiexec", "srun"
  std::optional<std::string> path;     // path found in PATH; nullopt where it is not installed
  std::vector<std::string> arguments;  // arguments between its name and "-n RANKS PROGRAM…"
  int end_signal = 0;                  // signal that makes it end its ranks, which are not its children; 0: none
};

/// Returns the launcher of the MPI library, with options that let the other ranks survive the death of one.
Launcher mpi_launcher();
/// Returns Slurm's launcher, which uses PMIx, for ranks with so many CPUs each. It ends all ranks when one of them
/// dies.
Launcher srun_launcher(int cpus_per_rank = 1);
/// Returns the command-line prefix that starts `ranks` processes of the program whose command line is appended to it.
std::vector<std::string> launch_prefix(const Launcher& launcher, int ranks);
/// Sets the environment variables that the launcher needs, in the process that will exec it. Existing values are kept.
void set_launch_environment();

/// Returns the names of the variables that hold a process's rank when this launcher, or srun, started it.
const std::vector<std::string>& rank_variables();

/// Returns the name and version of the MPI library: "Open MPI 4.1.4", "MPICH 4.0.2".
std::string mpi_version();

}  // namespace manyworlds::farm
