#include "io/process/confined.hpp"

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
constexpr int kPlace = 3;  // of the pipe, in the process that works
constexpr int kPipeBytes = 1 << 20;

void write_all(int descriptor, const void* data, std::size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(kFailedExit);  // nobody is left who would read it
    from += written;
    size -= static_cast<std::size_t>(written);
  }
}

/// Signals do what they do by default: handlers of ours would act on what this process is no part of.
void forget_handlers() {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Nothing is open but the pipe: what goes wrong here can neither read a file nor say a word.
void keep_only(int pipe) {
  const int nothing = ::open("/dev/null", O_RDWR);
  if (pipe <= kPlace) pipe = ::fcntl(pipe, F_DUPFD, kPlace + 1);
  for (int descriptor = 0; descriptor < kPlace; ++descriptor) ::dup2(nothing, descriptor);
  if (::dup2(pipe, kPlace) < 0) ::_exit(kFailedExit);
  ::close_range(kPlace + 1, ~0U, 0);
}

void limit(int resource, rlim_t soft, rlim_t hard) {
  rlimit now{};
  ::getrlimit(resource, &now);
  const rlimit wanted{std::min(soft, now.rlim_max), std::min(hard, now.rlim_max)};
  ::setrlimit(resource, &wanted);
}

[[noreturn]] void work_confined(const Confined::Limits& limits, int pipe, pid_t parent,
                                const std::function<void(const Confined::Send&)>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kFailedExit);  // it died before that could be asked for
  forget_handlers();
  keep_only(pipe);
  limit(RLIMIT_CORE, 0, 0);
  const auto seconds = static_cast<rlim_t>(limits.cpu.count());
  limit(RLIMIT_CPU, seconds, seconds + 1);
  limit_address_space(address_space_bytes() + limits.memory_bytes);
  try {
    work([](std::string_view message) {
      const std::uint64_t size = message.size();
      write_all(kPlace, &size, sizeof size);
      write_all(kPlace, message.data(), message.size());
    });
  } catch (const std::bad_alloc&) {
    ::_exit(kOutOfMemoryExit);
  } catch (...) {
    ::_exit(kFailedExit);
  }
  ::_exit(0);
}

}  // namespace

Confined::Confined(const Limits& limits, const std::function<void(const Send&)>& work) : limits_(limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw core::IoError("make", "a pipe");
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);  // fewer turns; a system that refuses is only slower
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) work_confined(limits_, ends[1], parent, work);
  const int error = errno;
  ::close(ends[1]);
  pipe_ = ends[0];
  if (process_ > 0) return;
  ::close(pipe_);
  throw core::IoError("start", "a process to read in", error);
}

Confined::~Confined() {
  ::close(pipe_);
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  wait();
}

/// The status of the process, which is gone then. Where the system reaps children itself it tells nothing: as if well.
int Confined::wait() {
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return status;
}

bool Confined::read_all(char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(pipe_, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<std::string> Confined::next() {
  std::uint64_t size = 0;
  if (broken_ || !read_all(reinterpret_cast<char*>(&size), sizeof size)) return std::nullopt;
  broken_ = size > limits_.message_bytes;
  std::string message(broken_ ? 0 : static_cast<std::size_t>(size), '\0');
  if (broken_ || !read_all(message.data(), message.size())) return std::nullopt;
  return message;
}

Confined::End Confined::end() {
  if (broken_) {
    ::kill(process_, SIGKILL);
    wait();
    return {false, "went wrong", "what it gave makes no sense"};
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
