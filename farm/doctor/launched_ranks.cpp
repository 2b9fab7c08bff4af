// MPI and Slurm: whether their commands are there, answer in time, and start ranks that find each other.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/base/plural.hpp"
#include "farm/doctor/finding.hpp"
#include "farm/protocol/mpi_transport.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/external_program.hpp"
#include "farm/system/host_resources.hpp"
#include "farm/system/launcher.hpp"

namespace manyworlds::farm::doctor {

namespace {

using State = Finding::State;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Returns the last line of what a program printed, shortened; launchers print frames of dashes around it.
std::string last_line(const std::string& output) {
  std::string_view rest = output;
  while (!rest.empty()) {
    const std::size_t start = rest.rfind('\n') == std::string_view::npos ? 0 : rest.rfind('\n') + 1;
    const std::string_view line = rest.substr(start);
    if (line.find_first_not_of("-= \t\r") != std::string_view::npos) return std::string(line.substr(0, 200));
    rest = rest.substr(0, start == 0 ? 0 : start - 1);
  }
  return "it printed nothing";
}

std::string failure_text(const ProgramResult& result, milliseconds patience) {
  if (result.late) return fmt::format("did not answer within {:g} s", static_cast<double>(patience.count()) / 1e3);
  return fmt::format("ended with {}: {}", result.exit_code, last_line(result.output));
}

}  // namespace

Finding examine_mpi(milliseconds patience) {
  const Launcher launcher = mpi_launcher();
  const std::string without = "with --in-process (slower for many ranks) sweeps need no MPI";
  if (!launcher.path)
    return {State::missing, "MPI", fmt::format("no {} of {} in PATH", launcher.name, mpi_version()),
            fmt::format("install it (openmpi-bin, mpich, or the site's module); without it the workers are children of "
                        "one process"),
            false};
  std::vector<std::string> command = launch_prefix(launcher, 2);
  command.insert(command.end(),
                 {std::filesystem::read_symlink("/proc/self/exe").string(), "doctor", std::string(kRankOption),
                  fmt::format("{}s", std::max<std::int64_t>(patience.count() / 1000, 1))});
  set_launch_environment();
  const auto begin = steady_clock::now();
  const auto result = run_external_program(command, StandardError::joined, patience + std::chrono::seconds(1));
  const std::chrono::duration<double> elapsed = steady_clock::now() - begin;
  if (!result) return {State::missing, "MPI", fmt::format("{} went away", *launcher.path), without, false};
  if (result->exit_code == 0 && result->output.find(kRanksMet) != std::string::npos)
    return {State::ok, "MPI",
            fmt::format("{}: {} started two ranks, which exchanged messages in {:.1f} s", mpi_version(), *launcher.path,
                        elapsed.count())};
  return {
      State::broken, "MPI", fmt::format("{}: {} {}", mpi_version(), *launcher.path, failure_text(*result, patience)),
      fmt::format("see that it belongs to {}, whose library the program is linked with; {}", mpi_version(), without)};
}

int meet_other_rank(milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  MpiTransport transport;
  if (transport.size() != 2) {
    fmt::print("a rank sees {} {} instead of two: the launcher is another library's\n", transport.size(),
               core::plural(transport.size(), "rank"));
    transport.leave(transport.size() == 1, kExitFailed);
    return kExitFailed;
  }
  transport.send(1 - transport.self(), "here");
  bool met = false;
  while (!(met && transport.flushed()) && steady_clock::now() < deadline) {
    met |= transport.receive().has_value();
    std::this_thread::sleep_for(milliseconds(1));
  }
  if (met && transport.self() == 0) fmt::print("{}\n", kRanksMet);
  if (!met) fmt::print("rank {} did not hear from the other\n", transport.self());
  transport.leave(met, kExitFailed);
  return met ? kExitDone : kExitFailed;
}

std::vector<Finding> examine_slurm(milliseconds patience) {
  const auto version = run_external_program({"sinfo", "--version"}, StandardError::joined, patience);
  if (!version)
    return {{State::missing, "Slurm", "no sinfo in PATH",
             "nothing on one machine; on a cluster, log in where Slurm's commands are", false}};
  Finding slurm{State::ok, "Slurm", last_line(version->output)};
  slurm.needed = false;
  const auto partitions = run_external_program({"sinfo", "--noheader", "--format=%R"}, StandardError::joined, patience);
  if (version->exit_code != 0 || !partitions || partitions->exit_code != 0 || partitions->late) {
    const ProgramResult& failed = version->exit_code != 0 || !partitions ? *version : *partitions;
    slurm.state = State::broken;
    slurm.found = fmt::format("sinfo {}", failure_text(failed, patience));
    slurm.advice = "ask for slurmctld's state (scontrol ping); sweeps on this machine do not need it";
    return {slurm};
  }
  std::string names = partitions->output;
  for (std::size_t at = 0; (at = names.find('\n', at)) != std::string::npos; at += 2) names.replace(at, 1, ", ");
  slurm.found += fmt::format(", partitions {}", names.empty() ? "none" : names);
  if (const std::string job = batch_job_id(); !job.empty()) {
    const char* tasks = std::getenv("SLURM_NTASKS");
    slurm.found += fmt::format("; in job {}{}", job, tasks == nullptr ? "" : fmt::format(" with {} tasks", tasks));
  }
  Finding srun{State::ok, "srun", "--mpi=pmix is offered"};
  srun.needed = false;
  const auto kinds = run_external_program({"srun", "--mpi=list"}, StandardError::joined, patience);
  if (!kinds || kinds->late || kinds->exit_code != 0 || kinds->output.find("pmix") == std::string::npos) {
    srun.state = kinds ? State::broken : State::missing;
    srun.found = !kinds ? "no srun in PATH"
                 : kinds->late || kinds->exit_code != 0
                     ? fmt::format("srun --mpi=list {}", failure_text(*kinds, patience))
                     : "srun --mpi=list does not offer pmix";
    srun.advice = "leave --srun out: inside a job mpirun starts the ranks";
  }
  return {slurm, srun};
}

}  // namespace manyworlds::farm::doctor
