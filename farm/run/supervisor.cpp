#include "farm/run/supervisor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "core/base/error.hpp"
#include "farm/status/progress.hpp"
#include "farm/status/run_status.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/host_resources.hpp"
#include "io/log/file.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm {

namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kMaxUncoordinatedPolls = 4;  // half a second each
constexpr seconds kExitGrace{10};          // grace for mpirun to exit after the run is complete
constexpr seconds kAskAgain{1};            // after this time, ranks that have not heard a request hear it again
constexpr seconds kLogPeriod{30};          // between two lines of progress in a log
constexpr seconds kStopTimeout{30};        // grace for ranks that were asked to stop to report

std::vector<std::string> launch_command(const SuperviseOptions& options) {
  std::vector<std::string> command = launch_prefix(options.launcher, options.ranks);
  command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  command.insert(command.end(), options.rank_arguments.begin(), options.rank_arguments.end());
  return command;
}

/// Returns where this process's ids of processes are valid.
std::string process_namespace() {
  std::error_code ignored;
  return io::host_name() + " " + std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

pid_t start(const SuperviseOptions& options, const sigset_t& inherited) {
  std::vector<std::string> command = launch_command(options);
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw core::IoError("start", options.launcher.name);
  if (child > 0) return child;
  ::setpgid(0, 0);  // a group of its own, so that this process handles Ctrl-C
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::pthread_sigmask(SIG_SETMASK, &inherited, nullptr);
  ::signal(SIGUSR1, SIG_IGN);  // until launcher and ranks have handlers: a request to stop is made again
  if (const int null_device = ::open("/dev/null", O_RDONLY); null_device >= 0) ::dup2(null_device, STDIN_FILENO);
  set_launch_environment();
  ::setenv(kSupervised, supervisor_mark(parent).c_str(), 1);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

class Supervision {
 public:
  Supervision(const SuperviseOptions& options, pid_t mpirun)
      : options_(options), mpirun_(mpirun), begin_(steady_clock::now()), last_report_(begin_), status_(status()) {}

  int watch(const sigset_t& signals) {
    while (!ended_) {
      const timespec wait{0, 500'000'000};
      if (const int signal = ::sigtimedwait(&signals, nullptr, &wait); signal > 0) handle_signal(signal);
      int status = 0;
      if (::waitpid(mpirun_, &status, WNOHANG) == mpirun_) ended_ = true, wait_status_ = status;
      if (options_.poll) options_.poll();
      draw();
      if (ended_) break;
      ask_again();
      end_when_overdue();
      end_without_coordinator();
      end_when_unresponsive();
      if (!kill_reason_.empty()) kill_ranks();
    }
    line_.clear();
    return exit_code();
  }

 private:
  void handle_signal(int signal) {
    if (signal == SIGCHLD) return;
    const bool again = signal == stop_signal_ && (signal == SIGINT || signal == SIGTERM);
    // Nothing has been computed in this incarnation, and ranks that are starting or planning would not answer for long.
    const bool nothing_to_finish = signal == SIGTERM && !status_changed_;
    if (again || nothing_to_finish) return end("stopped", kExitDrained);
    if (stop_signal_ == 0) {
      line_.clear();
      print_message("stopping: running tasks may finish{}\n",
                    signal == SIGINT ? "; once more Ctrl-C stops at once" : "");
    }
    stop_signal_ = signal;
    last_report_ = steady_clock::now();
    ask_to_stop();
  }

  void ask_to_stop() {
    asked_ = steady_clock::now();
    ::kill(mpirun_, SIGUSR1);
  }

  /// A request that came before the ranks listened is lost, so that it is made until they have reported that they stop.
  void ask_again() {
    if (stop_signal_ != 0 && state_ != "draining" && steady_clock::now() - asked_ > kAskAgain) ask_to_stop();
  }

  /// Returns the text of status.json; nullopt if it cannot be read.
  std::optional<std::string> status() const {
    try {
      return io::read_status(options_.directory);
    } catch (const std::exception&) {
      return std::nullopt;  // the writer will report what is wrong with the directory
    }
  }

  void draw() {
    auto status = this->status();
    if (!status || status == status_) return;
    status_ = std::move(status);
    status_changed_ = true;
    last_report_ = steady_clock::now();
    try {
      const auto parsed = parse_status(*status_, "status.json");
      state_ = parsed.at("state");
      line_.draw(progress_line(parsed));
    } catch (const std::exception&) {  // progress is optional
    }
  }

  /// Ends the ranks: nothing that runs is worth waiting for.
  void end(const std::string& why, int exit_code) {
    if (kill_reason_.empty()) kill_reason_ = why, exit_code_ = exit_code;
    kill_ranks();
  }

  /// A launcher that ends its ranks itself is killed only if that takes too long.
  void kill_ranks() {
    const auto now = steady_clock::now();
    if (!killing_since_) killing_since_ = now;
    const bool launcher_first = options_.launcher.end_signal != 0 && now - *killing_since_ < kExitGrace;
    ::kill(-mpirun_, launcher_first ? options_.launcher.end_signal : SIGKILL);
  }

  void end_when_overdue() {
    const auto now = steady_clock::now();
    if (!complete_since_) {
      if (io::read_complete(options_.directory)) complete_since_ = now;
    } else if (!io::read_complete(options_.directory)) {
      complete_since_.reset();  // it belonged to an earlier incarnation whose last ranks were still there
    } else if (now - *complete_since_ > kExitGrace) {
      kill_ranks();
    }
  }

  /// MPI does not tell the other ranks that the coordinating one has died, but that rank held the run's lock from its
  /// start. A coordinator that never took the lock is detected by a timeout.
  void end_without_coordinator() {
    const bool coordinated = io::is_in_use(options_.directory);
    was_coordinated_ |= coordinated;
    if (coordinated || complete_since_) {
      uncoordinated_polls_ = 0;
    } else if (!was_coordinated_) {
      if (steady_clock::now() - begin_ > options_.start_time)
        end(fmt::format("no rank began to coordinate within {}: see what {} says above",
                        duration_text(std::chrono::duration<double>(options_.start_time).count()),
                        options_.launcher.name),
            kExitInternal);
    } else if (++uncoordinated_polls_ >= kMaxUncoordinatedPolls) {
      end("the coordinating rank died", kExitInternal);
    }
  }

  /// Ranks that were asked to stop write their status every other second until they have stopped.
  void end_when_unresponsive() {
    if (stop_signal_ != 0 && !complete_since_ && steady_clock::now() - last_report_ > kStopTimeout)
      end(fmt::format("asked to stop, the ranks said nothing for {} s and were killed", kStopTimeout.count()),
          kExitDrained);
  }

  /// Reports, on stderr and in complete.json, an end that no rank could report.
  int report_end(int exit_code, const std::string& why) const {
    const std::string reason = fmt::format("{}; `{}` resumes it", why, options_.resume);
    // After a stop on request, the caller of supervise() prints how to resume.
    exit_code == kExitDrained ? print_message("{}\n", why) : print_message("manyworlds: {}\n", reason);
    try {
      options_.declare_failed(exit_code, reason);
    } catch (const std::exception&) {  // another process has resumed the run, or its disk is gone
    }
    return exit_code;
  }

  int exit_code() const {
    if (const auto completion = completion_of(options_.directory)) {
      if (completion->reason) print_message("manyworlds: {}\n", *completion->reason);
      return completion->exit_code;
    }
    if (!kill_reason_.empty()) return report_end(exit_code_, kill_reason_);
    if (WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == 127)
      throw core::IoError("start", options_.launcher.name, ENOENT);
    // Between the launcher's handlers and those of its ranks a request may still end a rank, and the launcher with it.
    if (stop_signal_ != 0 && !was_coordinated_) return report_end(kExitDrained, "stopped");
    const bool killed = WIFSIGNALED(wait_status_);
    return report_end(kExitInternal,
                      fmt::format("{} ended ({} {}) before {}", options_.launcher.name, killed ? "signal" : "exit code",
                                  killed ? WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_),
                                  was_coordinated_ ? "the run was over" : "a rank began to coordinate"));
  }

  const SuperviseOptions& options_;
  pid_t mpirun_;
  int wait_status_ = 0;
  bool ended_ = false, was_coordinated_ = false;
  int stop_signal_ = 0;             // the signal that asked to stop; 0: none
  steady_clock::time_point asked_;  // when they were last asked to stop
  std::string state_;               // as they last reported
  int uncoordinated_polls_ = 0;
  std::string kill_reason_;  // why the ranks were killed; "": they were not
  int exit_code_ = 0;
  steady_clock::time_point begin_;
  steady_clock::time_point last_report_;  // when the ranks last reported or were asked to stop
  std::optional<std::string> status_;     // contents of their last report
  bool status_changed_ = false;           // they have reported in this incarnation
  std::optional<steady_clock::time_point> complete_since_, killing_since_;
  ProgressLine line_;
};

}  // namespace

std::string supervisor_mark(pid_t supervisor) {
  return fmt::format("{} {}", supervisor, process_namespace());
}

std::optional<bool> supervisor_lives() {
  const char* const supervised = std::getenv(kSupervised);
  if (supervised == nullptr) return std::nullopt;
  std::istringstream words(supervised);
  pid_t supervisor = 0;
  std::string place;
  if (!(words >> supervisor) || !std::getline(words >> std::ws, place) || place != process_namespace())
    return std::nullopt;
  return ::kill(supervisor, 0) == 0 || errno != ESRCH;
}

int supervise(const SuperviseOptions& options) {
  sigset_t signals, inherited;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, &inherited);
  sigset_t for_child = inherited;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) sigdelset(&for_child, signal);
  const int code = Supervision(options, start(options, for_child)).watch(signals);
  ::pthread_sigmask(SIG_SETMASK, &inherited, nullptr);
  return code;
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::draw(const std::string& text) {
  if (!terminal_) return log(text);
  winsize size{};
  std::size_t width = 80;
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) width = size.ws_col;
  fmt::print(stderr, "\r\033[K{}", core::line_text(text).substr(0, width - 1));
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::log(const std::string& text) {
  const auto now = steady_clock::now();
  if (now - printed_ < kLogPeriod || text == last_text_) return;
  print_message("{}\n", text);
  last_text_ = text;
  printed_ = now;
}

void ProgressLine::clear() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace manyworlds::farm
