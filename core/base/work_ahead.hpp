// Work that other threads may do before its result is asked for. The simulation itself has neither threads nor locks:
// it offers pieces of work that are pure functions of what they hold, to whoever has threads, here or in other
// processes (farm/system/thread_pool.hpp), and does those itself that nobody has begun or answered when it needs them.
// So no result depends on how many there are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "core/base/error.hpp"

namespace manyworlds::core {

/// A piece of work, which is done once, by the thread that comes first.
class AheadTask {
 public:
  /// `expected_ns` is about what it takes.
  explicit AheadTask(double expected_ns = 0) : expected_ns_(expected_ns) {}
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
    end(Stage::done);
    return true;
  }
  bool is_done() const { return stage_.load() == Stage::done; }
  /// Waits until the thread that has begun it is done.
  void wait() const { stage_.wait(Stage::begun); }
  /// Throws what the work threw. Must be done.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

  double expected_ns() const { return expected_ns_; }
  /// Returns from what another process can do the work; "" if none can.
  virtual std::string question() const { return {}; }
  /// Is done by what another process has answered, unless a thread has begun it or the answer is of no use. Returns
  /// whether it is.
  bool answer(const std::string& answer) {
    Stage stage = Stage::offered;
    if (!stage_.compare_exchange_strong(stage, Stage::begun)) return false;
    bool taken = false;
    try {
      taken = take(answer);
    } catch (const InternalError&) {  // it is damaged
    }
    end(taken ? Stage::done : Stage::offered);
    return taken;
  }

  /// Whether another process was asked and may still answer; for the thread that offers alone.
  bool is_away = false;

 protected:
  virtual void work(std::size_t thread) = 0;
  /// Takes an answer instead of doing the work. Returns false or throws InternalError if it is of no use.
  virtual bool take(const std::string& /*answer*/) { return false; }

 private:
  enum class Stage : std::uint8_t { offered, begun, done };
  void end(Stage stage) {
    stage_.store(stage);
    stage_.notify_all();
  }

  double expected_ns_;
  std::atomic<Stage> stage_ = Stage::offered;
  std::exception_ptr error_;
};

/// Those that do offered work beside the thread that offers it. Only one thread may call this.
class HelperThreads {
 public:
  virtual ~HelperThreads() = default;
  /// Returns how many threads do work, with the caller, which is number 0.
  virtual std::size_t threads() const = 0;
  /// Returns whether anybody but the caller may do what is offered now.
  virtual bool may_help() { return threads() > 1; }
  /// Offers a task, which is forgotten if nobody holds it any more before a thread begins it.
  virtual void offer(const std::shared_ptr<AheadTask>& task) = 0;
  /// Does the oldest task that no thread has begun. Returns false if there is none.
  virtual bool help() = 0;
  /// Takes what other processes have answered.
  virtual void listen() {}

  /// Returns when `task` is done, by the caller if nobody has begun it. Until then the caller helps.
  void finish(AheadTask& task) {
    listen();
    while (task.is_away && !task.is_done() && help()) listen();
    while (!task.is_done())
      if (!task.run(0) && !help()) task.wait();
    task.rethrow();
  }
};

/// Other processes that do work as far as they get to it. A question may stay without an answer.
class RemoteHelpers {
 public:
  virtual ~RemoteHelpers() = default;
  /// Takes the answers that have arrived, "" where there will be none. Returns how many questions may be under way.
  virtual std::size_t listen(const std::function<void(std::uint64_t number, const std::string& answer)>& take) = 0;
  virtual void ask(std::uint64_t number, const std::string& question) = 0;
};

}  // namespace manyworlds::core
