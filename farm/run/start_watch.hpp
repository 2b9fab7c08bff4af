// A watch over the start of MPI. MPI_Init waits for every rank of the job, for ever where one of them has died, and
// nothing can interrupt it: so another thread ends the process.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

namespace manyworlds::farm {

class StartWatch {
 public:
  /// What is done before the process ends, by the watching thread: `why` is a clause in words. Returns the exit code.
  using GiveUp = std::function<int(const std::string& why)>;

  /// Watches until it is destroyed. Where that has not happened after `patience`, or when SIGTERM comes, `give_up` is
  /// called and the process ends. The caller must be the only thread of the process.
  StartWatch(std::chrono::milliseconds patience, GiveUp give_up);
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

 private:
  void watch();

  std::chrono::steady_clock::time_point deadline_;
  std::chrono::milliseconds patience_;
  GiveUp give_up_;
  std::atomic<bool> started_ = false;
  sigset_t before_{};
  std::thread thread_;
};

}  // namespace manyworlds::farm
