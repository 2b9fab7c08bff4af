#include "io/process/sandboxed_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/error.hpp"
#include "io/process/address_space.hpp"

namespace manyworlds::io {

namespace {

constexpr int kOutOfMemoryExit = 71, kFailedExit = 70;
constexpr int kPipeDescriptor = 3;  // descriptor of the pipe in the child process
constexpr int kPipeBytes = 1 << 20;

void write_all(int descriptor, const void* data, std::size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(kFailedExit);  // the reader is gone
    from += written;
    size -= static_cast<std::size_t>(written);
  }
}

/// Restores the default action of all signals: the parent's handlers would act on state that is not the child's.
void reset_signal_handlers() {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Closes every descriptor but the pipe: a compromised parser can neither read a file nor print anything.
void close_all_but(int pipe) {
  const int nothing = ::open("/dev/null", O_RDWR);
  if (pipe <= kPipeDescriptor) pipe = ::fcntl(pipe, F_DUPFD, kPipeDescriptor + 1);
  for (int descriptor = 0; descriptor < kPipeDescriptor; ++descriptor) ::dup2(nothing, descriptor);
  if (::dup2(pipe, kPipeDescriptor) < 0) ::_exit(kFailedExit);
  ::close_range(kPipeDescriptor + 1, ~0U, 0);
}

void limit(int resource, rlim_t soft, rlim_t hard) {
  rlimit now{};
  ::getrlimit(resource, &now);
  const rlimit wanted{std::min(soft, now.rlim_max), std::min(hard, now.rlim_max)};
  ::setrlimit(resource, &wanted);
}

[[noreturn]] void run_sandboxed(const SandboxedProcess::Limits& limits, int pipe, pid_t parent,
                                const std::function<void(const SandboxedProcess::Send&)>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kFailedExit);  // the parent died before the death signal was set
  reset_signal_handlers();
  close_all_but(pipe);
  limit(RLIMIT_CORE, 0, 0);
  const auto seconds = static_cast<rlim_t>(limits.cpu.count());
  limit(RLIMIT_CPU, seconds, seconds + 1);
  limit_address_space(address_space_bytes() + limits.memory_bytes);
  try {
    work([](std::string_view message) {
      const std::uint64_t size = message.size();
      write_all(kPipeDescriptor, &size, sizeof size);
      write_all(kPipeDescriptor, message.data(), message.size());
    });
  } catch (const std::bad_alloc&) {
    ::_exit(kOutOfMemoryExit);
  } catch (...) {
    ::_exit(kFailedExit);
  }
  ::_exit(0);
}

}  // namespace

SandboxedProcess::SandboxedProcess(const Limits& limits, const std::function<void(const Send&)>& work)
    : limits_(limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw core::IoError("make", "a pipe");
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);  // fewer context switches; if the system refuses, reading is only slower
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) run_sandboxed(limits_, ends[1], parent, work);
  const int error = errno;
  ::close(ends[1]);
  pipe_ = ends[0];
  if (process_ > 0) return;
  ::close(pipe_);
  throw core::IoError("start", "a child process", error);
}

SandboxedProcess::~SandboxedProcess() {
  ::close(pipe_);
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  wait();
}

/// Reaps the process and returns its status; 0, as for success, where the system reaps children itself.
int SandboxedProcess::wait() {
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return status;
}

bool SandboxedProcess::read_all(char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t bytes_read = ::read(pipe_, to, size);
    if (bytes_read < 0 && errno == EINTR) continue;
    if (bytes_read <= 0) return false;
    to += bytes_read;
    size -= static_cast<std::size_t>(bytes_read);
  }
  return true;
}

std::optional<std::string> SandboxedProcess::next() {
  std::uint64_t size = 0;
  if (invalid_message_ || !read_all(reinterpret_cast<char*>(&size), sizeof size)) return std::nullopt;
  invalid_message_ = size > limits_.message_bytes;
  std::string message(invalid_message_ ? 0 : static_cast<std::size_t>(size), '\0');
  if (invalid_message_ || !read_all(message.data(), message.size())) return std::nullopt;
  return message;
}

SandboxedProcess::ExitReport SandboxedProcess::exit_report() {
  if (invalid_message_) {
    ::kill(process_, SIGKILL);
    wait();
    return {false, "failed", "it sent an invalid message"};
  }
  const int status = wait();
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    if (number == SIGXCPU) return {false, "ran out of time", fmt::format("{} s of CPU", limits_.cpu.count())};
    const char* name = ::sigabbrev_np(number);
    return {false, "crashed", name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number)};
  }
  if (WEXITSTATUS(status) == kOutOfMemoryExit)
    return {false, "ran out of memory", fmt::format("{} MiB", limits_.memory_bytes >> 20)};
  if (WEXITSTATUS(status) != 0) return {false, "failed", fmt::format("exit status {}", WEXITSTATUS(status))};
  return {};
}

}  // namespace manyworlds::io
