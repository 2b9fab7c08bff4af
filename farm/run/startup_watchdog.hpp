// A watchdog for the start of MPI. MPI_Init waits for every rank of the job, forever if one has died or the launcher
// has, and cannot be interrupted, so another thread ends the process.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

namespace manyworlds::farm {

class StartupWatchdog {
 public:
  /// Called by the watching thread before the process ends; `why` is a clause. Returns the exit code.
  using OnTimeout = std::function<int(const std::string& why)>;

  /// Watches until it is destroyed. After `timeout` or on SIGTERM it calls `on_timeout` and ends the process; also when
  /// the launcher has gone, or, in a rank with a supervisor, when that has, which then had the last word. The caller
  /// must be the only thread of the process.
  StartupWatchdog(std::chrono::milliseconds timeout, OnTimeout on_timeout);
  ~StartupWatchdog();
  StartupWatchdog(const StartupWatchdog&) = delete;
  StartupWatchdog& operator=(const StartupWatchdog&) = delete;

 private:
  void watch();

  pid_t parent_;
  std::chrono::steady_clock::time_point deadline_;
  std::chrono::milliseconds timeout_;
  OnTimeout on_timeout_;
  std::atomic<bool> started_ = false;
  sigset_t saved_mask_{};
  std::thread thread_;
};

}  // namespace manyworlds::farm
