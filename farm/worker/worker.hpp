// A worker's message side: keeps a queue of tasks and the results it knows, feeds the simulator one task at a time,
// and says every second that it is there. It leaves when the run is over or the coordinator has fallen silent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "farm/protocol/message.hpp"
#include "farm/protocol/transport.hpp"

namespace manyworlds::farm {

/// Where a worker's tasks are computed: a process of its own, or in tests anything. Answers come back through the
/// worker's serves(), unfit() and computed(), later, never from inside these calls.
class Simulator {
 public:
  virtual ~Simulator() = default;
  virtual void build(const std::string& common) = 0;
  virtual void run(std::uint32_t task, const std::string& order, const std::vector<std::string>& inputs) = 0;
};

struct WorkerOptions {
  std::int64_t report_ms = 1'000;
  std::int64_t silence_ms = 30'000;         // without a word of the coordinator for so long, leave
  std::int64_t first_silence_ms = 600'000;  // the same before its first word: it plans the job first
};

class Worker {
 public:
  Worker(Transport& transport, int coordinator, Simulator& simulator, std::int64_t now_ms, WorkerOptions options = {});

  void receive(const Message& message, std::int64_t now_ms);
  void tick(std::int64_t now_ms);

  void serves(std::uint64_t signature, std::int64_t now_ms);
  void unfit(const std::string& reason, bool out_of_memory = false);
  void computed(std::uint32_t task, Outcome outcome, std::int64_t now_ms);

  /// How long the coordinator has said nothing.
  std::int64_t silence_ms(std::int64_t now_ms) const { return now_ms - heard_ms_; }
  bool left() const { return left_; }
  bool abandoned() const { return abandoned_; }  // left because nobody coordinates any more

 private:
  enum class Stage : std::uint8_t { new_here, building, serving, unfit };

  void take_work(const Message& message, std::int64_t now_ms);
  void drop(const Message& message, std::int64_t now_ms);
  void run_next(std::int64_t now_ms);
  void report(std::int64_t now_ms);
  void say_unfit();
  void send(const Message& message) { transport_.send(coordinator_, encode(message)); }
  std::vector<std::uint32_t> lacking(const Assignment& assignment) const;

  Transport& transport_;
  int coordinator_;
  Simulator& simulator_;
  WorkerOptions options_;
  Stage stage_ = Stage::new_here;
  std::string unfit_reason_;
  bool out_of_memory_ = false;
  std::uint64_t signature_ = 0;
  std::uint64_t results_sent_ = 0;
  std::deque<Assignment> queue_;
  std::unordered_set<std::uint32_t> queued_;  // the tasks in the queue
  std::optional<std::uint32_t> running_;
  std::map<std::uint32_t, std::string> known_;  // results computed here or sent along
  std::int64_t heard_ms_ = 0, reported_ms_ = 0;
  bool heard_ = false;
  bool left_ = false, abandoned_ = false;
};

}  // namespace manyworlds::farm
