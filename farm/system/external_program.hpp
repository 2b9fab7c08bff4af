// Runs an external program (sbatch, scontrol, sinfo) to its end and captures its output.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace manyworlds::farm {

struct ProgramResult {
  int exit_code = 0;   // 128 plus the signal number for a program that a signal ended
  std::string output;  // standard output without the last line feed
  bool late = false;   // it was ended because it ran longer than its limit
};
/// What becomes of the program's standard error; `joined` makes it a part of the output.
enum class StandardError : std::uint8_t { passed_through, discarded, joined };

/// Runs the command line `command`. A program with a `limit` (0: none) has a process group of its own, all of which is
/// ended once that time is over. Returns nullopt where `command[0]`, unless it is a path, is not in PATH. Throws
/// core::IoError where no process can be started.
std::optional<ProgramResult> run_external_program(const std::vector<std::string>& command, StandardError standard_error,
                                                  std::chrono::milliseconds limit = {});

}  // namespace manyworlds::farm
