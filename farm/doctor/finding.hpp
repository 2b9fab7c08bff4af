// What was found of one thing that the program uses on a machine, and the four examinations that make findings.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::farm::doctor {

struct Finding {
  enum class State : std::uint8_t { ok, missing, broken };
  State state = State::ok;
  std::string name;         // "memory"
  std::string found;        // one line
  std::string advice = {};  // what to do; "" if nothing is to be done
  bool needed = true;       // unless it is ok, a sweep on this machine alone does not work
};

constexpr std::string_view name_of(Finding::State state) {
  return state == Finding::State::ok ? "ok" : state == Finding::State::missing ? "missing" : "broken";
}

/// Processors, memory, limits of processes, shared memory.
std::vector<Finding> examine_machine();

/// The folder where runs are made, which need not exist yet; the store; the folder of temporary files; HDF5. Makes
/// small files in each and removes them.
std::vector<Finding> examine_folders(const std::filesystem::path& runs);

/// The launcher of the MPI library: starts two ranks of this program, which exchange a message within `patience`.
Finding examine_mpi(std::chrono::milliseconds patience);
/// What those ranks do: returns the exit code. Rank 0 prints kRanksMet.
int meet_other_rank(std::chrono::milliseconds patience);
inline constexpr std::string_view kRankOption = "--rank";  // and the patience, as in "20s"
inline constexpr std::string_view kRanksMet = "two ranks met";

/// Slurm's commands, each of which may take `patience`, and the job that this process is in.
std::vector<Finding> examine_slurm(std::chrono::milliseconds patience);

}  // namespace manyworlds::farm::doctor
