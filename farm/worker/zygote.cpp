#include "farm/worker/zygote.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "farm/worker/simulating_worker.hpp"
#include "farm/worker/task_limits.hpp"

namespace manyworlds::farm {

namespace {

struct Request {
  char action;  // 's': spawn, 'r': reap
  pid_t pid;
  std::uint64_t memory_bytes;
};
struct Reply {
  pid_t pid;  // negative: -errno
  int status;
};

/// Makes this process die with its parent. The parent may have died before prctl(), hence the second check.
void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

void send_reply(int control, const Reply& reply, int descriptor) {
  Reply copy = reply;
  iovec data{&copy, sizeof copy};
  alignas(cmsghdr) char control_buffer[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control_buffer;
    message.msg_controllen = sizeof control_buffer;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  while (::sendmsg(control, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

/// Thrown when the zygote does not answer: it was killed, and all its workers with it.
class ZygoteDied final : public core::IoError {
 public:
  ZygoteDied() : core::IoError("reach", "the process that forks simulating workers") {}
};

Reply receive_reply(int control, int& descriptor) {
  Reply reply{};
  iovec data{&reply, sizeof reply};
  alignas(cmsghdr) char control_buffer[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control_buffer;
  message.msg_controllen = sizeof control_buffer;
  ssize_t bytes_read;
  do bytes_read = ::recvmsg(control, &message, MSG_CMSG_CLOEXEC);
  while (bytes_read < 0 && errno == EINTR);
  if (bytes_read != static_cast<ssize_t>(sizeof reply)) throw ZygoteDied();
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return reply;
}

void spawn_for(int control, std::uint64_t memory_bytes, const JobKind& kind) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    send_reply(control, {-errno, 0}, -1);
    return;
  }
  const pid_t zygote = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    die_with_parent(zygote);
    ::close(control);
    ::close(ends[0]);
    limit_memory(memory_bytes);
    simulate(ends[1], kind);
    ::_exit(0);
  }
  send_reply(control, {child < 0 ? -errno : child, 0}, child < 0 ? -1 : ends[0]);
  ::close(ends[0]);
  ::close(ends[1]);
}

[[noreturn]] void serve(int control, const JobKind& kind) {
  // The process that handles messages reacts to draining and Ctrl-C; both signals may reach the whole process group.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGUSR1, SIG_IGN);
  for (;;) {
    Request request{};
    const ssize_t bytes_read = ::recv(control, &request, sizeof request, 0);
    if (bytes_read < 0 && errno == EINTR) continue;
    if (bytes_read != static_cast<ssize_t>(sizeof request)) ::_exit(0);
    if (request.action == 's') {
      spawn_for(control, request.memory_bytes, kind);
    } else {
      Reply reply{};
      do reply.pid = ::waitpid(request.pid, &reply.status, 0);
      while (reply.pid < 0 && errno == EINTR);
      if (reply.pid < 0) reply.pid = -errno;
      send_reply(control, reply, -1);
    }
  }
}

Reply ask(int control, Request request, int& descriptor) {
  while (::send(control, &request, sizeof request, MSG_NOSIGNAL) < 0)
    if (errno != EINTR) throw ZygoteDied();
  const Reply reply = receive_reply(control, descriptor);
  if (reply.pid < 0)
    throw core::IoError(request.action == 's' ? "fork" : "wait for", "a simulating worker", -reply.pid);
  return reply;
}

/// Returns the two ends of the socket pair between a process and its zygote.
std::array<int, 2> open_control() {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw core::IoError("open", "a socket pair for simulating workers");
  return ends;
}

/// Limit on attempts to spawn a worker: an outside cause that killed one zygote may kill the next one too.
constexpr int kMaxAttempts = 4;

/// Environment variable of a process that is started as a zygote: the parent's pid and the control descriptor.
constexpr const char* kStartedAsZygote = "MANYWORLDS_ZYGOTE";

void serve_if_started_as_zygote(const JobKind& kind) {
  const char* const value = std::getenv(kStartedAsZygote);
  if (value == nullptr) return;
  pid_t parent = -1;
  int control = -1;
  if (std::sscanf(value, "%d %d", &parent, &control) != 2) ::_exit(1);
  ::unsetenv(kStartedAsZygote);
  die_with_parent(parent);
  ::fcntl(control, F_SETFD, FD_CLOEXEC);
  serve(control, kind);
}

/// Returns a null-terminated array for exec(), whose pointers are valid as long as `texts`.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Returns the command line of this process, including the program name.
std::vector<std::string> own_command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string word; std::getline(file, word, '\0');) arguments.push_back(word);
  return arguments;
}

}  // namespace

Zygote::Zygote(JobKind kind) : kind_(std::move(kind)) {
  serve_if_started_as_zygote(kind_);
  const auto ends = open_control();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw core::IoError("fork", "the process that forks simulating workers");
  if (pid_ == 0) {
    die_with_parent(parent);
    ::close(ends[0]);
    serve(ends[1], kind_);
  }
  ::close(ends[1]);
  control_ = ends[0];
}

Zygote::~Zygote() {
  stop_zygote();
}

void Zygote::stop_zygote() {
  ::close(control_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// MPI and threads exist by now, so forking alone is not safe: the child executes the program anew.
void Zygote::restart() {
  const auto ends = open_control();
  std::vector<std::string> variables{fmt::format("{}={} {}", kStartedAsZygote, ::getpid(), ends[1])};
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  std::vector<std::string> arguments = own_command_line();
  const auto environment_pointers = pointers_to(variables), argument_pointers = pointers_to(arguments);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], ends[1]);  // clears close-on-exec for this descriptor
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argument_pointers.data(), environment_pointers.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    throw core::IoError("start", "another process that forks simulating workers", error);
  }
  stop_zygote();
  control_ = ends[0];
  pid_ = child;
}

Zygote::SimulatingProcess Zygote::spawn(std::uint64_t memory_bytes) {
  for (int attempt = 1;; ++attempt) {
    try {
      SimulatingProcess worker;
      worker.pid = ask(control_, {'s', 0, memory_bytes}, worker.socket).pid;
      MANYWORLDS_CHECK(worker.socket >= 0, "no socket came with worker {}", worker.pid);
      return worker;
    } catch (const ZygoteDied&) {
      if (attempt == kMaxAttempts) throw;
    }
    restart();
  }
}

int Zygote::reap(pid_t pid) {
  int none = -1;
  try {
    return ask(control_, {'r', pid, 0}, none).status;
  } catch (const ZygoteDied&) {
    return SIGKILL;  // as a wait status: ended by SIGKILL
  }
}

}  // namespace manyworlds::farm
