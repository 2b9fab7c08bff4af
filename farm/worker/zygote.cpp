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
  char what;  // 's'pawn or 'r'eap
  pid_t pid;
  std::uint64_t memory_bytes;
};
struct Reply {
  pid_t pid;  // negative: -errno
  int status;
};

/// Dies with its parent. The parent may have died before the call, hence the second look.
void die_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

void send_reply(int control, const Reply& reply, int descriptor) {
  Reply copy = reply;
  iovec data{&copy, sizeof copy};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  while (::sendmsg(control, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

/// The zygote does not answer: it was killed, and all its workers with it.
class ZygoteDied final : public core::IoError {
 public:
  ZygoteDied() : core::IoError("reach", "the process that forks simulating workers") {}
};

Reply receive_reply(int control, int& descriptor) {
  Reply reply{};
  iovec data{&reply, sizeof reply};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  ssize_t got;
  do got = ::recvmsg(control, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof reply)) throw ZygoteDied();
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
    die_with(zygote);
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
  // Draining and Ctrl-C are the message process's business; both signals may reach the whole group.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGUSR1, SIG_IGN);
  for (;;) {
    Request request{};
    const ssize_t got = ::recv(control, &request, sizeof request, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof request)) ::_exit(0);
    if (request.what == 's') {
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
  if (reply.pid < 0) throw core::IoError(request.what == 's' ? "fork" : "wait for", "a simulating worker", -reply.pid);
  return reply;
}

/// The two ends of what a process and its zygote talk over.
std::array<int, 2> open_control() {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw core::IoError("open", "a socket pair for simulating workers");
  return ends;
}

/// How often a worker is asked for: what kills zygotes from outside may well strike the next one too, as it starts.
constexpr int kMostTries = 4;

/// In the environment of a process that is started to be a zygote: whose, and its end of what they talk over.
constexpr const char* kStartedAsZygote = "MANYWORLDS_ZYGOTE";

void serve_where_started_as_zygote(const JobKind& kind) {
  const char* const said = std::getenv(kStartedAsZygote);
  if (said == nullptr) return;
  pid_t parent = -1;
  int control = -1;
  if (std::sscanf(said, "%d %d", &parent, &control) != 2) ::_exit(1);
  ::unsetenv(kStartedAsZygote);
  die_with(parent);
  ::fcntl(control, F_SETFD, FD_CLOEXEC);
  serve(control, kind);
}

/// Of the words and variables that a program is started with; they must outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The words this program was started with, its own name included.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

Zygote::Zygote(JobKind kind) : kind_(std::move(kind)) {
  serve_where_started_as_zygote(kind_);
  const auto ends = open_control();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw core::IoError("fork", "the process that forks simulating workers");
  if (pid_ == 0) {
    die_with(parent);
    ::close(ends[0]);
    serve(ends[1], kind_);
  }
  ::close(ends[1]);
  control_ = ends[0];
}

Zygote::~Zygote() {
  let_go();
}

void Zygote::let_go() {
  ::close(control_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// MPI and threads are there by now, so that a fork alone would not do: the child becomes the program anew.
void Zygote::start_again() {
  const auto ends = open_control();
  std::vector<std::string> variables{fmt::format("{}={} {}", kStartedAsZygote, ::getpid(), ends[1])};
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  std::vector<std::string> words = own_words();
  const auto environment = pointers_to(variables), arguments = pointers_to(words);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], ends[1]);  // it stays open there
  pid_t child = -1;
  const int error = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    throw core::IoError("start", "another process that forks simulating workers", error);
  }
  let_go();
  control_ = ends[0];
  pid_ = child;
}

Zygote::Simulating Zygote::spawn(std::uint64_t memory_bytes) {
  for (int tries = 1;; ++tries) {
    try {
      Simulating worker;
      worker.pid = ask(control_, {'s', 0, memory_bytes}, worker.socket).pid;
      MANYWORLDS_CHECK(worker.socket >= 0, "no socket came with worker {}", worker.pid);
      return worker;
    } catch (const ZygoteDied&) {
      if (tries == kMostTries) throw;
    }
    start_again();
  }
}

int Zygote::reap(pid_t pid) {
  int none = -1;
  try {
    return ask(control_, {'r', pid, 0}, none).status;
  } catch (const ZygoteDied&) {
    return SIGKILL;  // as a wait status: killed by it
  }
}

}  // namespace manyworlds::farm
