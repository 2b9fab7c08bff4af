// Ctrl-C between the runs of a search.
#pragma once

#include <csignal>
#include <ctime>

namespace manyworlds::farm {

/// While it exists, a Ctrl-C between two runs waits until it is asked for. The runs handle it themselves.
class DeferredCtrlC {
 public:
  DeferredCtrlC() { ::pthread_sigmask(SIG_BLOCK, &signal_, &before_); }
  ~DeferredCtrlC() {
    while (came()) continue;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  DeferredCtrlC(const DeferredCtrlC&) = delete;
  DeferredCtrlC& operator=(const DeferredCtrlC&) = delete;

  /// Returns whether one came since it was last asked.
  static bool came() {
    const timespec no_time{0, 0};
    const sigset_t signal = only_sigint();
    return ::sigtimedwait(&signal, nullptr, &no_time) == SIGINT;
  }

 private:
  static sigset_t only_sigint() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return set;
  }

  const sigset_t signal_ = only_sigint();
  sigset_t before_{};
};

}  // namespace manyworlds::farm
