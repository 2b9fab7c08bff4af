#include "farm/supervisor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "farm/exit_code.hpp"
#include "farm/launcher.hpp"
#include "farm/processors.hpp"
#include "farm/progress.hpp"
#include "io/run_directory.hpp"

namespace manyworlds::farm {

namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kUncoordinatedLooks = 4;  // half a second each
constexpr seconds kOutlives{10};        // what mpirun may take to leave when the run is complete

std::vector<std::string> launch_command(const SuperviseOptions& options) {
  std::vector<std::string> words = launch_words(find_launcher().value_or(launcher_name()), options.ranks);
  words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  words.insert(words.end(), options.rank_words.begin(), options.rank_words.end());
  return words;
}

pid_t start(const SuperviseOptions& options, const sigset_t& inherited) {
  std::vector<std::string> words = launch_command(options);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw core::IoError("start", launcher_name());
  if (child > 0) return child;
  ::setpgid(0, 0);  // Ctrl-C is ours to translate
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::pthread_sigmask(SIG_SETMASK, &inherited, nullptr);
  if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  set_launch_environment();
  ::setenv(kSupervised, "1", 1);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

class Supervision {
 public:
  Supervision(const SuperviseOptions& options, pid_t mpirun)
      : directory_(options.directory), resume_(options.resume), look_(options.look), mpirun_(mpirun) {}

  int watch(const sigset_t& signals) {
    while (!ended_) {
      const timespec wait{0, 500'000'000};
      if (const int signal = ::sigtimedwait(&signals, nullptr, &wait); signal > 0) take(signal);
      int status = 0;
      if (::waitpid(mpirun_, &status, WNOHANG) == mpirun_) ended_ = true, wait_status_ = status;
      if (look_) look_();
      draw();
      if (!ended_) end_when_overdue();
      if (!ended_) end_without_coordinator();
    }
    line_.clear();
    return exit_code();
  }

 private:
  void take(int signal) {
    if (signal == SIGCHLD) return;
    if (signal == SIGINT && asked_to_stop_) {
      killed_ = true;
      ::kill(-mpirun_, SIGKILL);
      return;
    }
    if (!asked_to_stop_) {
      line_.clear();
      fmt::print(stderr, "stopping: what runs may finish{}\n",
                 signal == SIGINT ? "; once more Ctrl-C stops at once" : "");
    }
    asked_to_stop_ = true;
    ::kill(mpirun_, SIGUSR1);
  }

  void draw() {
    try {
      if (const auto status = io::read_status(directory_)) line_.draw(progress_line(nlohmann::json::parse(*status)));
    } catch (const std::exception&) {
      // Progress is a courtesy: what is wrong with the directory will be said by who writes there.
    }
  }

  void end_when_overdue() {
    const auto now = steady_clock::now();
    if (!complete_since_) {
      if (io::read_complete(directory_)) complete_since_ = now;
    } else if (now - *complete_since_ > kOutlives) {
      ::kill(-mpirun_, SIGKILL);
    }
  }

  /// MPI does not tell the other ranks that the coordinating one died, but it held the run's lock.
  void end_without_coordinator() {
    const bool coordinated = io::is_in_use(directory_);
    was_coordinated_ |= coordinated;
    if (!was_coordinated_ || coordinated || complete_since_) {
      uncoordinated_looks_ = 0;
    } else if (++uncoordinated_looks_ >= kUncoordinatedLooks) {
      ::kill(-mpirun_, SIGKILL);
      coordinator_died_ = true;
    }
  }

  int exit_code() const {
    if (const auto complete = io::read_complete(directory_)) {
      const auto said = nlohmann::json::parse(*complete);
      if (const auto reason = said.find("reason"); reason != said.end())
        fmt::print(stderr, "manyworlds: {}\n", reason->get<std::string>());
      return said.at("exit").get<int>();
    }
    const std::string go_on = fmt::format("`{}` goes on", resume_);
    if (killed_) {
      fmt::print(stderr, "stopped; {}\n", go_on);
      return kExitDrained;
    }
    if (coordinator_died_) {
      fmt::print(stderr, "manyworlds: the coordinating rank died; {}\n", go_on);
      return kExitInternal;
    }
    if (WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == 127)
      throw core::IoError("start", launcher_name(), ENOENT);
    fmt::print(stderr, "manyworlds: {} ended ({} {}) before the run was over; {}\n", launcher_name(),
               WIFSIGNALED(wait_status_) ? "signal" : "exit code",
               WIFSIGNALED(wait_status_) ? WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_), go_on);
    return kExitInternal;
  }

  std::filesystem::path directory_;
  std::string resume_;
  std::function<void()> look_;
  pid_t mpirun_;
  int wait_status_ = 0;
  bool ended_ = false, asked_to_stop_ = false, killed_ = false, was_coordinated_ = false, coordinator_died_ = false;
  int uncoordinated_looks_ = 0;
  std::optional<steady_clock::time_point> complete_since_;
  ProgressLine line_;
};

}  // namespace

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
  if (!terminal_) return;
  winsize size{};
  std::size_t width = 80;
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) width = size.ws_col;
  fmt::print(stderr, "\r\033[K{}", text.substr(0, width - 1));
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace manyworlds::farm
