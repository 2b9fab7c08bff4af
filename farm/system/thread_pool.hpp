// The threads of one simulating process, and the processes that help it. The threads end with the pool; a process that
// forks must make it afterwards.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/work_ahead.hpp"

namespace manyworlds::farm {

class ThreadPool final : public core::HelperThreads {
 public:
  /// `threads` counts the caller's, so that 1 starts none. `remote`, which may be null, must outlive the pool. Throws
  /// core::IoError if a thread cannot be started.
  explicit ThreadPool(std::size_t threads, core::RemoteHelpers* remote = nullptr);
  ~ThreadPool() override;

  std::size_t threads() const override { return helpers_.size() + 1; }
  void offer(const std::shared_ptr<core::AheadTask>& task) override;
  bool may_help() override;
  bool help() override;
  void listen() override;
  /// Returns how many tasks other threads than the caller's have done.
  std::uint64_t tasks_done() const { return tasks_done_; }
  /// Returns how many answers of other processes were used.
  std::uint64_t answers_used() const { return answers_used_; }

 private:
  void stop();
  void ask();
  void serve(std::size_t thread);
  std::shared_ptr<core::AheadTask> take();

  std::mutex mutex_;
  std::condition_variable offered_;
  std::deque<std::weak_ptr<core::AheadTask>> tasks_;  // oldest first
  bool ends_ = false;
  std::atomic<std::uint64_t> tasks_done_ = 0;
  std::vector<std::thread> helpers_;

  // Of the caller's thread alone.
  core::RemoteHelpers* remote_;
  std::size_t places_ = 0;                                        // questions that may be under way
  std::map<std::uint64_t, std::weak_ptr<core::AheadTask>> away_;  // by the number of the question
  std::uint64_t asked_ = 0, answers_used_ = 0, not_listened_ = 0;
};

}  // namespace manyworlds::farm
