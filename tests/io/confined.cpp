// Work in a process of its own: what it says comes back, and however it ends, the caller hears of it and goes on.
#include "io/process/sandboxed_process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "core/base/error.hpp"

using namespace manyworlds;
using namespace manyworlds::io;

namespace {

constexpr SandboxedProcess::Limits kRoomy{std::uint64_t{1} << 30, std::chrono::seconds(60), std::uint64_t{1} << 24};

SandboxedProcess::ExitReport end_of(const SandboxedProcess::Limits& limits,
                                    const std::function<void(const SandboxedProcess::Send&)>& work) {
  SandboxedProcess confined(limits, work);
  while (confined.next()) {
  }
  return confined.exit_report();
}

/// A variable that the compiler cannot look through.
volatile int kNothing = 0;

}  // namespace

TEST_CASE("messages of any size come back whole and in order, and then the end") {
  std::vector<std::string> sent;
  for (const std::size_t size : {0, 1, 4096, 5'000'000, 3}) sent.push_back(std::string(size, static_cast<char>(size)));
  SandboxedProcess confined(kRoomy, [&](const SandboxedProcess::Send& send) {
    for (const std::string& message : sent) send(message);
  });
  for (const std::string& message : sent) CHECK(confined.next() == message);
  CHECK_FALSE(confined.next());
  CHECK(confined.exit_report().succeeded);
}

TEST_CASE("work that dies of a signal is told by its name") {
  for (const auto& [number, name] : {std::pair(SIGSEGV, "SIGSEGV"), std::pair(SIGABRT, "SIGABRT")}) {
    const auto exit_report = end_of(kRoomy, [number = number](const SandboxedProcess::Send& send) {
      send("half of it");
      ::raise(number);
    });
    CHECK_FALSE(exit_report.succeeded);
    CHECK((exit_report.failure == "crashed" && exit_report.detail == name));
  }
}

TEST_CASE("work that goes on for ever runs out of time") {
  const auto exit_report = end_of({kRoomy.memory_bytes, std::chrono::seconds(1), 1}, [](const SandboxedProcess::Send&) {
    while (kNothing == 0) {
    }
  });
  CHECK((exit_report.failure == "ran out of time" && exit_report.detail == "1 s of CPU"));
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("work that wants more memory than it may have does not get it") {
  const auto exit_report = end_of({std::uint64_t{64} << 20, kRoomy.cpu, 1}, [](const SandboxedProcess::Send&) {
    const std::vector<char> large(std::size_t{1} << 30, static_cast<char>(kNothing));
    if (large.at(12345) != 0) ::_exit(0);
  });
  CHECK((exit_report.failure == "ran out of memory" && exit_report.detail == "64 MiB"));
}
#endif

TEST_CASE("work that throws, or says more than it may, has failed") {
  CHECK(end_of(kRoomy, [](const SandboxedProcess::Send&) { throw std::runtime_error("no"); }).failure == "failed");
  const auto exit_report =
      end_of({kRoomy.memory_bytes, kRoomy.cpu, 3}, [](const SandboxedProcess::Send& send) { send("four"); });
  CHECK(exit_report.failure == "failed");
}

TEST_CASE("work has no file of ours, says nothing, and no handler of ours runs in it") {
  const auto handler = std::signal(SIGTERM, [](int) { ::_exit(0); });
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  SandboxedProcess confined(kRoomy, [&](const SandboxedProcess::Send& send) {
    std::string open;
    for (int descriptor = 0; descriptor < 64; ++descriptor)
      if (::fcntl(descriptor, F_GETFD) >= 0) open += std::to_string(descriptor) + " ";
    char name[32] = {};
    send(::readlink("/proc/self/fd/1", name, sizeof name - 1) > 0 ? open + name : open);
    ::raise(SIGTERM);
  });
  CHECK(confined.next() == "0 1 2 3 /dev/null");
  CHECK_FALSE(confined.next());
  CHECK(confined.exit_report().detail == "SIGTERM");
  std::signal(SIGTERM, handler);
  ::close(ends[0]), ::close(ends[1]);
}

TEST_CASE("work that nobody waits for is ended, and leaves no zombie") {
  pid_t process = 0;
  {
    SandboxedProcess confined(kRoomy, [](const SandboxedProcess::Send& send) {
      send(std::to_string(::getpid()));
      while (true) ::pause();
    });
    process = std::stoi(confined.next().value());
  }
  CHECK(::kill(process, 0) != 0);
}

TEST_CASE("work does not outlive who asked for it, however that ends") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t asking = ::fork();
  if (asking == 0) {
    SandboxedProcess confined(kRoomy, [](const SandboxedProcess::Send& send) {
      send(std::to_string(::getpid()));
      while (true) ::pause();
    });
    const std::string process = confined.next().value();
    if (::write(ends[1], process.data(), process.size()) < 0) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  ::close(ends[1]);
  char process[16] = {};
  REQUIRE(::read(ends[0], process, sizeof process - 1) > 0);
  ::waitpid(asking, nullptr, 0);
  while (::kill(std::atoi(process), 0) == 0) {  // until whoever reaps orphans has reaped it
    const std::string status = "/proc/" + std::string(process) + "/stat";
    const int file = ::open(status.c_str(), O_RDONLY);
    char text[256] = {};
    const bool read = file >= 0 && ::read(file, text, sizeof text - 1) > 0;
    ::close(file);
    if (read && std::string(text).find(") Z ") != std::string::npos) break;
    ::usleep(1000);
  }
  ::close(ends[0]);
}
