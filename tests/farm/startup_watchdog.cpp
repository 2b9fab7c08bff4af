// A rank that starts ends when nobody is left to start it: when its launcher has gone, or its supervisor.
#include "farm/run/startup_watchdog.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>

#include "farm/run/supervisor.hpp"
#include "farm/system/exit_code.hpp"

using namespace manyworlds::farm;

namespace {

/// Returns what a process that waits in the start of MPI says when it ends, while `launch` is what forked it: it gets
/// the process to run, and the end of this function waits until that has ended.
std::string last_words(const std::function<void(const std::function<void()>& rank)>& launch) {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t launcher = ::fork();
  REQUIRE(launcher >= 0);
  if (launcher == 0) {
    ::close(pipe[0]);
    launch([&] {
      StartupWatchdog watchdog(std::chrono::hours(1), [&](const std::string& why) {
        const std::string said = "said: " + why;
        return ::write(pipe[1], said.data(), said.size()) > 0 ? kExitInternal : kExitIo;
      });
      for (;;) ::pause();
    });
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string said;
  for (char c = 0; ::read(pipe[0], &c, 1) == 1;) said += c;  // to the end of every process that can write
  ::close(pipe[0]);
  ::waitpid(launcher, nullptr, 0);
  return said;
}

}  // namespace

TEST_CASE("a rank that starts ends with a reason when its launcher has gone") {
  const std::string said = last_words([](const std::function<void()>& rank) {
    ::unsetenv(kSupervised);
    const pid_t launcher = ::getpid();
    if (::fork() != 0) return ::usleep(300'000), void();
    if (::getppid() == launcher) rank();
  });
  CHECK(said == "said: the launcher of the ranks ended while they were starting");
}

TEST_CASE("a rank that starts ends silently when its supervisor has gone, even if that was before it looked") {
  const std::string said = last_words([](const std::function<void()>& rank) {
    const pid_t supervisor = ::fork();
    if (supervisor == 0) ::_exit(0);
    ::waitpid(supervisor, nullptr, 0);
    ::setenv(kSupervised, supervisor_mark(supervisor).c_str(), 1);
    rank();
  });
  CHECK(said.empty());
}

TEST_CASE("ranks see their supervisor only where its process id means something") {
  ::setenv(kSupervised, supervisor_mark(::getpid()).c_str(), 1);
  CHECK(supervisor_lives() == true);
  for (const char* elsewhere : {"1", "1 another-host pid:[1]", "", "x y"}) {
    ::setenv(kSupervised, elsewhere, 1);
    CHECK_FALSE(supervisor_lives());
  }
  ::unsetenv(kSupervised);
  CHECK_FALSE(supervisor_lives());
}
