// GOAL as programs, by the rules of LogGOPSim (spcl/LogGOPSim, src/LogGOPSim/LogGOPSim.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::goal {

/// The parameters of LogGOPS that the network does not have of its own.
struct GoalOptions {
  double overhead_ns = 0;             // o: a send or a receive occupies its cpu for so long
  std::int64_t eager_bytes = 65'535;  // S: what waits for a send up to this waits for its overhead alone, and the send
                                      // for nothing at the receiver
  double calc_ns = 1;                 // of a unit of calc
};

/// Returns the schedule as programs. calc and overheads of one cpu run one after the other, in the order in which a
/// rank alone would; sends and receives run beside them. `requires` waits for the end, `irequires` for what the other
/// operation waited for. L, g and G are those of the simulated network, as is O. A transfer above eager_bytes begins
/// when both ends have come to it; both state its size. nic is not followed. A rank without an operation idles.
/// Throws InputError for what parse_goal_file() and GraphPrograms refuse.
programs::Imported import_goal(std::string_view text, const std::string& name, const GoalOptions& options = {});

/// Reads the same from a file, which may be compressed by gzip.
programs::Imported read_goal(const std::string& path, const GoalOptions& options = {});

}  // namespace manyworlds::experiments::goal
