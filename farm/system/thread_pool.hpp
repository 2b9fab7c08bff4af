// The threads of one simulating process. They end with the pool; a process that forks must make it afterwards.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/work_ahead.hpp"

namespace manyworlds::farm {

class ThreadPool final : public core::HelperThreads {
 public:
  /// `threads` counts the caller's, so that 1 starts none. Throws core::IoError if a thread cannot be started.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool() override;

  std::size_t threads() const override { return helpers_.size() + 1; }
  void offer(const std::shared_ptr<core::AheadTask>& task) override;
  bool help() override;
  /// Returns how many tasks others than the caller have done.
  std::uint64_t tasks_done() const { return tasks_done_; }

 private:
  void stop();
  void serve(std::size_t thread);
  std::shared_ptr<core::AheadTask> take();

  std::mutex mutex_;
  std::condition_variable offered_;
  std::deque<std::weak_ptr<core::AheadTask>> tasks_;  // oldest first
  bool ends_ = false;
  std::atomic<std::uint64_t> tasks_done_ = 0;
  std::vector<std::thread> helpers_;
};

}  // namespace manyworlds::farm
