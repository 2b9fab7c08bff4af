#include "farm/system/external_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "farm/system/host_resources.hpp"

namespace manyworlds::farm {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kStopGrace{3'000};  // between SIGTERM and SIGKILL

/// A program that was started, with the reading end of its standard output.
class Child {
 public:
  Child(const std::string& path, const std::vector<std::string>& command, StandardError standard_error, bool limited)
      : grouped_(limited) {
    std::vector<std::string> copies = command;
    std::vector<char*> arguments;
    for (std::string& argument : copies) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    int pipe_ends[2];
    if (::pipe2(pipe_ends, O_CLOEXEC) != 0) throw core::IoError("make", "a pipe");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    if (standard_error == StandardError::discarded)
      ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (standard_error == StandardError::joined)
      ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    if (limited) ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error = ::posix_spawn(&process_, path.c_str(), &actions, &attributes, arguments.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(pipe_ends[1]);
    output_ = pipe_ends[0];
    if (error == 0) return;
    ::close(output_);
    throw core::IoError("start", path, error);
  }
  ~Child() { ::close(output_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Appends what the program prints until it closes its output, or until `deadline`; returns whether it closed it.
  bool read_output(std::string& text, std::optional<steady_clock::time_point> deadline) {
    std::array<char, 4096> buffer;
    while (true) {
      int wait_ms = -1;
      if (deadline) {
        const auto left = std::chrono::duration_cast<milliseconds>(*deadline - steady_clock::now()).count();
        if (left <= 0) return false;
        wait_ms = static_cast<int>(std::min<std::int64_t>(left, 3'600'000));
      }
      pollfd ready{output_, POLLIN, 0};
      if (::poll(&ready, 1, wait_ms) <= 0) continue;
      const ssize_t bytes_read = ::read(output_, buffer.data(), buffer.size());
      if (bytes_read < 0 && errno == EINTR) continue;
      if (bytes_read <= 0) return true;
      text.append(buffer.data(), static_cast<std::size_t>(bytes_read));
    }
  }
  void signal(int number) const { ::kill(grouped_ ? -process_ : process_, number); }
  /// Returns the exit code as a shell does.
  int wait() const {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  bool grouped_;
  pid_t process_ = -1;
  int output_ = -1;
};

}  // namespace

std::optional<ProgramResult> run_external_program(const std::vector<std::string>& command, StandardError standard_error,
                                                  milliseconds limit) {
  const bool is_path = command.at(0).find('/') != std::string::npos;
  const auto path = is_path ? std::optional(command[0]) : find_program(command[0]);
  if (!path) return std::nullopt;
  const bool limited = limit.count() > 0;
  Child child(*path, command, standard_error, limited);
  ProgramResult result;
  const auto in = [](milliseconds time) { return steady_clock::now() + time; };
  result.late = !child.read_output(result.output, limited ? std::optional(in(limit)) : std::nullopt);
  if (result.late) {
    child.signal(SIGTERM);
    child.read_output(result.output, in(kStopGrace));
    child.signal(SIGKILL);
  }
  result.exit_code = child.wait();
  if (result.output.ends_with('\n')) result.output.pop_back();
  return result;
}

}  // namespace manyworlds::farm
