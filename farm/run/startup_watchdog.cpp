#include "farm/run/startup_watchdog.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "farm/status/progress.hpp"

namespace manyworlds::farm {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

sigset_t only_sigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StartupWatchdog::StartupWatchdog(milliseconds timeout, OnTimeout on_timeout)
    : deadline_(steady_clock::now() + timeout), timeout_(timeout), on_timeout_(std::move(on_timeout)) {
  // SIGTERM is blocked in all threads, so that the watching thread receives it.
  const sigset_t sigterm = only_sigterm();
  ::pthread_sigmask(SIG_BLOCK, &sigterm, &saved_mask_);
  thread_ = std::thread([this] { watch(); });
}

StartupWatchdog::~StartupWatchdog() {
  started_ = true;
  ::pthread_kill(thread_.native_handle(), SIGTERM);  // wakes that thread alone
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &saved_mask_, nullptr);
}

void StartupWatchdog::watch() {
  const sigset_t sigterm = only_sigterm();
  for (;;) {
    const auto remaining =
        std::max(std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now()), milliseconds{0});
    const timespec wait{remaining.count() / 1000, remaining.count() % 1000 * 1'000'000};
    const bool terminated = ::sigtimedwait(&sigterm, nullptr, &wait) == SIGTERM;
    if (started_) return;
    if (!terminated && steady_clock::now() < deadline_) continue;
    const double seconds = std::chrono::duration<double>(timeout_).count();
    ::_exit(on_timeout_(terminated
                            ? "SIGTERM came while ranks were starting"
                            : fmt::format("the ranks did not all start within {} (--start-time): one of them died, "
                                          "or cannot reach the others",
                                          duration_text(seconds))));
  }
}

}  // namespace manyworlds::farm
