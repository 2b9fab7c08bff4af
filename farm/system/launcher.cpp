#include "farm/system/launcher.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "farm/system/host_resources.hpp"

namespace manyworlds::farm {
namespace {

// Where several MPI libraries are installed, the plain name may belong to another one.
#ifdef OMPI_MAJOR_VERSION
constexpr const char* kLauncherNames[] = {"mpirun.openmpi", "mpirun"};
#else
constexpr const char* kLauncherNames[] = {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"};
#endif

std::optional<std::string> find_first() {
  for (const char* name : kLauncherNames)
    if (auto path = find_program(name)) return path;
  return std::nullopt;
}

}  // namespace

Launcher srun_launcher(int cpus_per_rank) {
  Launcher launcher{"srun", find_program("srun"), {"--mpi=pmix", "--quit-on-interrupt"}, SIGINT};
  // Since Slurm 22.05, srun does not take this from the job.
  if (cpus_per_rank > 1) launcher.arguments.push_back(fmt::format("--cpus-per-task={}", cpus_per_rank));
  return launcher;
}

std::vector<std::string> launch_prefix(const Launcher& launcher, int ranks) {
  std::vector<std::string> arguments{launcher.path.value_or(launcher.name)};
  arguments.insert(arguments.end(), launcher.arguments.begin(), launcher.arguments.end());
  arguments.insert(arguments.end(), {"-n", std::to_string(ranks)});
  return arguments;
}

#ifdef OMPI_MAJOR_VERSION

Launcher mpi_launcher() {
  // With --enable-recovery, the death of one rank does not end the other ranks.
  Launcher launcher{"mpirun", find_first(), {"--oversubscribe", "--bind-to", "none", "--enable-recovery"}};
  if (::geteuid() == 0) launcher.arguments.emplace_back("--allow-run-as-root");
  return launcher;
}

void set_launch_environment() {
  const auto unless_set = [](const char* name, const char* value) { ::setenv(name, value, 0); };
  // Containers forbid process_vm_readv, and Open MPI prints a long warning about it.
  unless_set("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
  // Without an agent mpirun refuses to start even on one machine, where it never runs the agent.
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

#else  // MPICH and its derivatives, started by hydra

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
