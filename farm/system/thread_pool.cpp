#include "farm/system/thread_pool.hpp"

#include <system_error>

#include "core/base/error.hpp"

namespace manyworlds::farm {

ThreadPool::ThreadPool(std::size_t threads) {
  try {
    for (std::size_t thread = 1; thread < threads; ++thread) helpers_.emplace_back([this, thread] { serve(thread); });
  } catch (const std::system_error& error) {
    stop();
    throw core::IoError("start", "a thread", error.code().value());
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  offered_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::offer(const std::shared_ptr<core::AheadTask>& task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(task);
  }
  offered_.notify_one();
}

/// Returns the oldest task that is still wanted, or null. The mutex must be held.
std::shared_ptr<core::AheadTask> ThreadPool::take() {
  while (!tasks_.empty()) {
    std::shared_ptr<core::AheadTask> task = tasks_.front().lock();
    tasks_.pop_front();
    if (task) return task;
  }
  return nullptr;
}

bool ThreadPool::help() {
  while (true) {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<core::AheadTask> task = take();
    lock.unlock();
    if (!task) return false;
    if (task->run(0)) return true;
  }
}

void ThreadPool::serve(std::size_t thread) {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    std::shared_ptr<core::AheadTask> task = take();
    if (!task) {
      offered_.wait(lock);
      continue;
    }
    lock.unlock();
    tasks_done_ += task->run(thread);
    task = nullptr;
    lock.lock();
  }
}

}  // namespace manyworlds::farm
