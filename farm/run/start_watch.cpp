#include "farm/run/start_watch.hpp"

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

StartWatch::StartWatch(milliseconds patience, GiveUp give_up)
    : deadline_(steady_clock::now() + patience), patience_(patience), give_up_(std::move(give_up)) {
  // Blocked everywhere, so that the watching thread is the one that takes it.
  const sigset_t sigterm = only_sigterm();
  ::pthread_sigmask(SIG_BLOCK, &sigterm, &before_);
  thread_ = std::thread([this] { watch(); });
}

StartWatch::~StartWatch() {
  started_ = true;
  ::pthread_kill(thread_.native_handle(), SIGTERM);  // wakes that thread alone
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StartWatch::watch() {
  const sigset_t sigterm = only_sigterm();
  for (;;) {
    const auto left =
        std::max(std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now()), milliseconds{0});
    const timespec wait{left.count() / 1000, left.count() % 1000 * 1'000'000};
    const bool terminated = ::sigtimedwait(&sigterm, nullptr, &wait) == SIGTERM;
    if (started_) return;
    if (!terminated && steady_clock::now() < deadline_) continue;
    const double seconds = std::chrono::duration<double>(patience_).count();
    ::_exit(give_up_(terminated ? "SIGTERM came while ranks were starting"
                                : fmt::format("the ranks did not all start within {} (--start-time): one of them died, "
                                              "or cannot reach the others",
                                              duration_text(seconds))));
  }
}

}  // namespace manyworlds::farm
