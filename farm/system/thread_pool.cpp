#include "farm/system/thread_pool.hpp"

#include <system_error>

#include "core/base/error.hpp"

namespace manyworlds::farm {

namespace {
// A question and its answer take some hundred microseconds between two ranks of one machine (docs/scale.md).
constexpr double kWorthAsking_ns = 1e6;
constexpr std::uint64_t kSilentOffers = 32;  // while nobody helps, one of so many offers listens for somebody
}  // namespace

ThreadPool::ThreadPool(std::size_t threads, core::RemoteHelpers* remote) : remote_(remote) {
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
  if (!helpers_.empty()) offered_.notify_one();
  if (remote_ != nullptr) {
    listen();
    ask();
  }
}

bool ThreadPool::may_help() {
  if (remote_ != nullptr && places_ == 0 && not_listened_++ % kSilentOffers == 0) listen();
  return !helpers_.empty() || places_ > 0;
}

void ThreadPool::listen() {
  if (remote_ == nullptr) return;
  places_ = remote_->listen([this](std::uint64_t number, const std::string& answer) {
    const auto found = away_.find(number);
    if (found == away_.end()) return;
    if (const std::shared_ptr<core::AheadTask> task = found->second.lock()) {
      task->is_away = false;
      if (!answer.empty()) answers_used_ += task->answer(answer);
    }
    away_.erase(found);
  });
}

/// Asks others to do the newest tasks that are worth it: the oldest are needed first, and are begun here.
void ThreadPool::ask() {
  if (away_.size() >= places_) return;
  std::vector<std::shared_ptr<core::AheadTask>> chosen;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(tasks_, [](const auto& task) { return task.expired(); });
    for (auto next = tasks_.end(); next != tasks_.begin() && away_.size() + chosen.size() < places_;) {
      const std::shared_ptr<core::AheadTask> task = (--next)->lock();
      if (!task || task->expected_ns() < kWorthAsking_ns) continue;
      chosen.push_back(task);
      next = tasks_.erase(next);
    }
  }
  for (const std::shared_ptr<core::AheadTask>& task : chosen) {
    const std::string question = task->question();
    if (question.empty()) continue;
    task->is_away = true;
    away_.emplace(++asked_, task);
    remote_->ask(asked_, question);
  }
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
