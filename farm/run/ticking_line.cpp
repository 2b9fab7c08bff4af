#include "farm/run/ticking_line.hpp"

#include <utility>

#include "farm/run/supervisor.hpp"

namespace manyworlds::farm {

using std::chrono::milliseconds;

TickingLine::TickingLine(std::function<std::string(double)> text) : text_(std::move(text)) {
  thread_ = std::thread([this] { tick(); });
}

TickingLine::~TickingLine() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TickingLine::tick() {
  ProgressLine line;
  std::unique_lock lock(mutex_);
  for (milliseconds wait(2'000); !over_.wait_for(lock, wait, [&] { return ended_; }); wait = milliseconds(500))
    line.draw(text_(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count()));
}

}  // namespace manyworlds::farm
