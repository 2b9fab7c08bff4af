// Runs an external program (sbatch, scontrol, sinfo) to its end and captures its output.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace manyworlds::farm {

struct ProgramResult {
  int exit_code = 0;   // 128 plus the signal number for a program that a signal ended
  std::string output;  // standard output without the last line feed
};
/// Whether the program's standard error is passed through.
enum class StandardError { passed_through, discarded };

/// Runs the command line `command`. Returns nullopt where `command[0]` is not in PATH. Throws core::IoError where no
/// process can be started.
std::optional<ProgramResult> run_external_program(const std::vector<std::string>& command,
                                                  StandardError standard_error);

}  // namespace manyworlds::farm
