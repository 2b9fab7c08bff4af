#include "farm/serve/live_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "farm/http/access.hpp"
#include "farm/system/console.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::serve {
namespace {

using std::chrono::steady_clock;

constexpr int kSocketDescriptor = 3;
constexpr std::chrono::seconds kShutdownGrace{5};  // longer than the server's own grace period

/// Returns the environment of this process with one more variable.
std::vector<std::string> environment_with(const std::string& variable) {
  std::vector<std::string> all{variable};
  for (char** one = environ; *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& arguments) {
  std::vector<char*> result;
  for (std::string& word : arguments) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

LiveServer::LiveServer(const Address& address) : listener_(Listener::at(address, "--serve")) {}

void LiveServer::start(const std::filesystem::path& run_directory) {
  const std::string token = listener_.loopback() ? "" : token_of(run_directory);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw core::IoError("make", "a pipe");
  lifetime_pipe_ = ends[1];
  std::vector<std::string> arguments{std::filesystem::read_symlink("/proc/self/exe").string(), "serve",
                                     core::as_operand(run_directory.string()), std::to_string(listener_.port())};
  std::vector<std::string> variables = environment_with(fmt::format("{}={}", kSocketVariable, kSocketDescriptor));
  // The server gets its own process group, so that Ctrl-C reaches only the run, and an empty signal mask.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, listener_.descriptor(), kSocketDescriptor);
  const int error = ::posix_spawn(&process_, arguments[0].c_str(), &actions, &attributes, pointers(arguments).data(),
                                  pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  ::close(ends[0]);
  if (error != 0) {
    process_ = -1;
    throw core::IoError("start", "the server of the live page", error);
  }
  print_message("live page: {}\n", live_page_url(listener_, token));
  ::close(listener_.release());  // from now on only the server holds it, and closes it when it ends
}

void LiveServer::poll() {
  int status = 0;
  if (process_ < 0 || ::waitpid(process_, &status, WNOHANG) != process_) return;
  process_ = -1;
  print_message("the server of the live page has ended ({} {}); the run goes on without it\n",
                WIFSIGNALED(status) ? "signal" : "exit code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

LiveServer::~LiveServer() {
  if (lifetime_pipe_ >= 0) ::close(lifetime_pipe_);
  const auto until = steady_clock::now() + kShutdownGrace;
  while (process_ >= 0) {
    const pid_t ended = ::waitpid(process_, nullptr, WNOHANG);
    if (ended == process_ || (ended < 0 && errno != EINTR)) return;
    if (steady_clock::now() > until) ::kill(process_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string live_page_url(const Listener& listener, const std::string& token) {
  if (listener.loopback()) return fmt::format("{} on {}", listener.url(), io::host_name());
  return token.empty() ? listener.url() : fmt::format("{}?token={}", listener.url(), token);
}

}  // namespace manyworlds::farm::serve
