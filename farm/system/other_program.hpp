// Another program, run to its end for what it says: sbatch, scontrol, sinfo.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace manyworlds::farm {

struct Ended {
  int exit_code = 0;  // 128 and the signal for one that died
  std::string said;   // on standard output, without the last line feed
};
/// Whether what it says on standard error passes through.
enum class Talk { heard, unheard };

/// Nothing where `words[0]` is not in PATH. Throws IoError where no process can be made.
std::optional<Ended> run_other_program(const std::vector<std::string>& words, Talk talk);

}  // namespace manyworlds::farm
