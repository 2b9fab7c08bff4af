// What `sweep` is when somebody starts it plainly: it starts mpirun, or srun, on itself, draws progress, passes on the
// wish to stop, and takes its exit code from complete.json, because mpirun's own means nothing once a rank has died.
// Whatever becomes of the ranks, it ends: a start that hangs, a coordinating rank that dies and ranks that do not
// answer to the wish to stop are killed, and complete.json says why.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "farm/system/launcher.hpp"

namespace manyworlds::farm {

/// In the environment of ranks whose supervisor talks to people.
inline constexpr const char* kSupervised = "MANYWORLDS_SUPERVISED";

struct SuperviseOptions {
  std::filesystem::path directory;  // of the run
  std::string resume;               // the command that goes on with it
  Launcher launcher;
  int ranks = 1;
  std::vector<std::string> rank_words;      // behind the program's name
  std::chrono::milliseconds start_time{0};  // after which some rank must have begun to coordinate
  /// Writes into complete.json how the run ended that no rank could say it of. May throw.
  std::function<void(int exit_code, const std::string& reason)> declare_failed;
  std::function<void()> look;  // now and then, while it runs
};

/// Returns the exit code of the run. No threads of the caller may take SIGINT, SIGTERM, SIGHUP, SIGUSR1 or SIGCHLD.
int supervise(const SuperviseOptions& options);

/// One line that is drawn over and over on stderr; silent when that is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  void draw(const std::string& text);
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
};

}  // namespace manyworlds::farm
