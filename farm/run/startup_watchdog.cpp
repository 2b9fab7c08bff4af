#include "farm/run/startup_watchdog.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "farm/run/supervisor.hpp"
#include "farm/status/progress.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook{500};  // how often the launcher is looked for

sigset_t only_sigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StartupWatchdog::StartupWatchdog(milliseconds timeout, OnTimeout on_timeout)
    : parent_(::getppid()),
      deadline_(steady_clock::now() + timeout),
      timeout_(timeout),
      on_timeout_(std::move(on_timeout)) {
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
    const auto wait_ms = std::min(remaining, kLook).count();
    const timespec wait{wait_ms / 1000, wait_ms % 1000 * 1'000'000};
    const bool terminated = ::sigtimedwait(&sigterm, nullptr, &wait) == SIGTERM;
    if (started_) return;
    const std::optional<bool> supervised = supervisor_lives();
    if (supervised == false) ::_exit(kExitInternal);
    if (!supervised && ::getppid() != parent_)
      ::_exit(on_timeout_("the launcher of the ranks ended while they were starting"));
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
