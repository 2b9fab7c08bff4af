// A line on a terminal that shows the progress of a long operation.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace manyworlds::farm {

/// From two seconds after its construction until its destruction, draws `text(elapsed_s)` twice a second, as a
/// ProgressLine. Another thread calls `text`.
class TickingLine {
 public:
  explicit TickingLine(std::function<std::string(double elapsed_s)> text);
  ~TickingLine();
  TickingLine(const TickingLine&) = delete;
  TickingLine& operator=(const TickingLine&) = delete;

 private:
  void tick();

  std::function<std::string(double)> text_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable over_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace manyworlds::farm
