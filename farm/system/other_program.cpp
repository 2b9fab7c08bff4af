#include "farm/system/other_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "core/base/error.hpp"
#include "farm/system/processors.hpp"

namespace manyworlds::farm {

std::optional<Ended> run_other_program(const std::vector<std::string>& words, Talk talk) {
  const auto path = find_program(words.at(0));
  if (!path) return std::nullopt;
  std::vector<char*> arguments;
  std::vector<std::string> copies = words;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw core::IoError("make", "a pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (talk == Talk::unheard) ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, path->c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Ended ended;
  std::array<char, 4096> buffer;
  while (error == 0) {
    const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    ended.said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  if (error != 0) throw core::IoError("start", *path, error);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  ended.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (ended.said.ends_with('\n')) ended.said.pop_back();
  return ended;
}

}  // namespace manyworlds::farm
