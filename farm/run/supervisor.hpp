// The supervisor, which is what `sweep` becomes when started without mpirun. It starts mpirun or srun on this program,
// draws progress, passes on requests to stop, and takes its exit code from complete.json, because mpirun's exit code
// means nothing once a rank has died. It always ends: it kills a start that hangs, ranks whose coordinator died, and
// ranks that ignore a request to stop; complete.json then gives the reason.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "farm/system/launcher.hpp"

namespace manyworlds::farm {

/// Environment variable of ranks whose supervisor prints the messages. It says which process that is, and where.
inline constexpr const char* kSupervised = "MANYWORLDS_SUPERVISED";

/// Returns the value of that variable for ranks of the supervisor with this process id.
std::string supervisor_mark(pid_t supervisor);
/// Returns whether this rank's supervisor is there; nothing if the rank has none, or cannot see it because it is on
/// another host or in another namespace of processes.
std::optional<bool> supervisor_lives();

struct SuperviseOptions {
  std::filesystem::path directory;  // run directory
  std::string resume;               // command that resumes the run
  Launcher launcher;
  int ranks = 1;
  std::vector<std::string> rank_arguments;  // arguments after the program's name
  std::chrono::milliseconds start_time{0};  // some rank must have begun to coordinate within this time
  /// Writes the end of the run into complete.json when no rank could write it. May throw.
  std::function<void(int exit_code, const std::string& reason)> declare_failed;
  std::function<void()> poll;  // called about twice a second while it runs
};

/// Returns the exit code of the run. No thread of the caller may handle SIGINT, SIGTERM, SIGHUP, SIGUSR1 or SIGCHLD.
int supervise(const SuperviseOptions& options);

/// A line that is redrawn in place on stderr. If stderr is not a terminal, what changed is printed as a line of its own
/// every half minute, so that the log of a long run shows that it advances.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  void draw(const std::string& text);
  void clear();

 private:
  void log(const std::string& text);

  bool terminal_;
  bool drawn_ = false;
  std::string last_text_;  // on no terminal: what was printed last, and when
  std::chrono::steady_clock::time_point printed_ = std::chrono::steady_clock::now();
};

}  // namespace manyworlds::farm
