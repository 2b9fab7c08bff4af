#include "farm/system/external_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "core/base/error.hpp"
#include "farm/system/host_resources.hpp"

namespace manyworlds::farm {

std::optional<ProgramResult> run_external_program(const std::vector<std::string>& command,
                                                  StandardError standard_error) {
  const auto path = find_program(command.at(0));
  if (!path) return std::nullopt;
  std::vector<char*> arguments;
  std::vector<std::string> copies = command;
  for (std::string& argument : copies) arguments.push_back(argument.data());
  arguments.push_back(nullptr);

  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) throw core::IoError("make", "a pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  if (standard_error == StandardError::discarded)
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, path->c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  ProgramResult result;
  std::array<char, 4096> buffer;
  while (error == 0) {
    const ssize_t bytes_read = ::read(pipe_ends[0], buffer.data(), buffer.size());
    if (bytes_read < 0 && errno == EINTR) continue;
    if (bytes_read <= 0) break;
    result.output.append(buffer.data(), static_cast<std::size_t>(bytes_read));
  }
  ::close(pipe_ends[0]);
  if (error != 0) throw core::IoError("start", *path, error);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (result.output.ends_with('\n')) result.output.pop_back();
  return result;
}

}  // namespace manyworlds::farm
