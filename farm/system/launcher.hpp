// How ranks are started, which differs between MPI libraries: by the launcher of the one this program was built with,
// or inside a Slurm job by srun.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace manyworlds::farm {

struct Launcher {
  std::string name;                 // what people call it: "mpirun", "mpiexec", "srun"
  std::optional<std::string> path;  // in PATH; nothing where it is not installed
  std::vector<std::string> words;   // behind its name, in front of "-n RANKS PROGRAM…"
  int end_signal = 0;               // that makes it end its ranks, which are no children of its
};

/// The MPI library's, such that the death of one rank spares the others.
Launcher mpi_launcher();
/// Slurm's, by PMIx. Where a rank dies it ends the others.
Launcher srun_launcher();
/// The words that start `ranks` processes of what is appended to them.
std::vector<std::string> launch_words(const Launcher& launcher, int ranks);
/// What it needs in the environment of the process that becomes it; what is set there already stays.
void set_launch_environment();

/// The variables that hold a rank's number when this launcher, or srun, started the process.
const std::vector<std::string>& rank_variables();

/// "Open MPI 4.1.4", "MPICH 4.0.2".
std::string mpi_version();

}  // namespace manyworlds::farm
