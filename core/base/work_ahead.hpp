// Work that other threads may do before its result is asked for. The simulation itself has neither threads nor locks:
// it offers pieces of work that are pure functions of what they hold, to whoever has threads
// (farm/system/thread_pool.hpp), and does those itself that nobody has begun when it needs them. So no result depends
// on how many threads there are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

namespace manyworlds::core {

/// A piece of work, which is done once, by the thread that comes first.
class AheadTask {
 public:
  AheadTask() = default;
  AheadTask(const AheadTask&) = delete;
  AheadTask& operator=(const AheadTask&) = delete;
  virtual ~AheadTask() = default;

  /// Does the work on a thread, by its number, unless one has begun it. Returns whether it did.
  bool run(std::size_t thread) {
    Stage stage = Stage::offered;
    if (!stage_.compare_exchange_strong(stage, Stage::begun)) return false;
    try {
      work(thread);
    } catch (...) {
      error_ = std::current_exception();
    }
    stage_.store(Stage::done);
    stage_.notify_all();
    return true;
  }
  bool is_done() const { return stage_.load() == Stage::done; }
  /// Waits until the thread that has begun it is done.
  void wait() const { stage_.wait(Stage::begun); }
  /// Throws what the work threw. Must be done.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 protected:
  virtual void work(std::size_t thread) = 0;

 private:
  enum class Stage : std::uint8_t { offered, begun, done };
  std::atomic<Stage> stage_ = Stage::offered;
  std::exception_ptr error_;
};

/// Threads that do offered work beside the one that offers it. Only one thread may call this.
class HelperThreads {
 public:
  virtual ~HelperThreads() = default;
  /// Returns how many threads do work, with the caller, which is number 0.
  virtual std::size_t threads() const = 0;
  /// Offers a task, which is forgotten if nobody holds it any more before a thread begins it.
  virtual void offer(const std::shared_ptr<AheadTask>& task) = 0;
  /// Does the oldest task that no thread has begun. Returns false if there is none.
  virtual bool help() = 0;

  /// Returns when `task` is done, by the caller if nobody has begun it. Until then the caller helps.
  void finish(AheadTask& task) {
    if (!task.run(0))
      while (!task.is_done())
        if (!help()) task.wait();
    task.rethrow();
  }
};

}  // namespace manyworlds::core
