// A line on a terminal for what takes longer than people like to wait without a word.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace manyworlds::farm {

/// From two seconds after it was made until its end, draws what `text` says of the seconds gone by, twice a second;
/// nothing where stderr is no terminal. `text` is called from another thread.
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
