#include "farm/system/launcher.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "farm/system/processors.hpp"

namespace manyworlds::farm {
namespace {

// Where several libraries are installed, the plain name may belong to another.
#ifdef OMPI_MAJOR_VERSION
constexpr const char* kLaunchers[] = {"mpirun.openmpi", "mpirun"};
#else
constexpr const char* kLaunchers[] = {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"};
#endif

std::optional<std::string> find_first() {
  for (const char* name : kLaunchers)
    if (auto path = find_program(name)) return path;
  return std::nullopt;
}

}  // namespace

Launcher srun_launcher() {
  return {"srun", find_program("srun"), {"--mpi=pmix", "--quit-on-interrupt"}, SIGINT};
}

std::vector<std::string> launch_words(const Launcher& launcher, int ranks) {
  std::vector<std::string> words{launcher.path.value_or(launcher.name)};
  words.insert(words.end(), launcher.words.begin(), launcher.words.end());
  words.insert(words.end(), {"-n", std::to_string(ranks)});
  return words;
}

#ifdef OMPI_MAJOR_VERSION

Launcher mpi_launcher() {
  // --enable-recovery: a rank that dies does not take the others with it.
  Launcher launcher{"mpirun", find_first(), {"--oversubscribe", "--bind-to", "none", "--enable-recovery"}};
  if (::geteuid() == 0) launcher.words.emplace_back("--allow-run-as-root");
  return launcher;
}

void set_launch_environment() {
  const auto unless_set = [](const char* name, const char* value) { ::setenv(name, value, 0); };
  // Containers forbid process_vm_readv, and OpenMPI says so at length.
  unless_set("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
  // Without an agent mpirun refuses to start even on one machine; it is never run there.
  if (!find_program("ssh") && !find_program("rsh")) unless_set("OMPI_MCA_plm_rsh_agent", "sh");
  if (::geteuid() == 0) {
    unless_set("OMPI_ALLOW_RUN_AS_ROOT", "1");
    unless_set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
}

const std::vector<std::string>& rank_variables() {
  static const std::vector<std::string> names{"OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
  return names;
}

std::string mpi_version() {
  return fmt::format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
}

#else  // MPICH and its relatives, started by hydra

Launcher mpi_launcher() {
  return {"mpiexec", find_first(), {"-disable-auto-cleanup", "-bind-to", "none"}};
}

void set_launch_environment() {}

const std::vector<std::string>& rank_variables() {
  static const std::vector<std::string> names{"PMI_RANK", "PMIX_RANK"};
  return names;
}

std::string mpi_version() {
#ifdef MPICH_VERSION
  return fmt::format("MPICH {}", MPICH_VERSION);
#else
  return fmt::format("MPI {}.{}", MPI_VERSION, MPI_SUBVERSION);
#endif
}

#endif

}  // namespace manyworlds::farm
