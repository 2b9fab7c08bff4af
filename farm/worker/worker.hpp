// The messaging side of a worker. It keeps a queue of tasks and the results it knows, gives the simulator one task at a
// time, and reports every second. It leaves when the run is over or the coordinator has fallen silent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "farm/protocol/message.hpp"
#include "farm/protocol/message_transport.hpp"
#include "farm/worker/help_exchange.hpp"

namespace manyworlds::farm {

/// The interface to the computation of tasks: a separate process, or a stub in tests. Answers arrive later through the
/// worker's serves(), incompatible(), computed(), asks() and helped(), never from inside these calls.
class Simulator {
 public:
  virtual ~Simulator() = default;
  virtual void build(const std::string& common_spec) = 0;
  virtual void run(std::uint32_t task, const std::string& spec, const std::vector<std::string>& inputs) = 0;
  // Work ahead (farm/worker/help_exchange.hpp); one that knows of none never answers and is told nothing.
  /// Does work ahead for a task of another worker, whose question has this number.
  virtual void help(std::uint64_t /*number*/, const std::string& /*question*/) {}
  /// Tells the running task the answer to a question of its own, "" if there will be none.
  virtual void answer(std::uint64_t /*number*/, const std::string& /*answer*/) {}
  /// Tells the running task how many questions it may have under way.
  virtual void allow_questions(std::size_t /*places*/) {}
};

struct WorkerOptions {
  std::int64_t report_ms = 1'000;
  std::int64_t silence_ms = 30'000;         // leave after this long without a message from the coordinator
  std::int64_t first_silence_ms = 600'000;  // the same before its first message: it plans the job first
  std::int64_t answer_ms = 10'000;          // a question not answered for this long is given up, with who was asked
};

class Worker {
 public:
  Worker(MessageTransport& transport, int coordinator, Simulator& simulator, std::int64_t now_ms,
         WorkerOptions options = {});

  void receive(const Message& message, std::int64_t now_ms);
  /// Hears what another worker sends, which says nothing of the coordinator.
  void hear(int from, const Message& message) { help_.hear(from, message, is_busy()); }
  void tick(std::int64_t now_ms);

  void serves(std::uint64_t signature, std::int64_t now_ms);
  void incompatible(const std::string& reason, bool out_of_memory = false);
  void computed(std::uint32_t task, Outcome outcome, std::int64_t now_ms, std::uint64_t answers_used = 0);
  void asks(std::uint64_t number, const std::string& question, std::int64_t now_ms, std::uint64_t answers_used = 0) {
    help_.count_used(answers_used);
    help_.asks(number, question, now_ms);
  }
  void helped(std::uint64_t number, std::string answer, std::uint64_t us) {
    help_.helped(number, std::move(answer), us);
  }

  /// Returns the time since the last message from the coordinator.
  std::int64_t silence_ms(std::int64_t now_ms) const { return now_ms - heard_ms_; }
  bool left() const { return left_; }
  bool abandoned() const { return abandoned_; }  // left because nobody coordinates any more

 private:
  enum class Stage : std::uint8_t { awaiting_job, building, serving, incompatible };

  void accept_work(const Message& message, std::int64_t now_ms);
  void drop(const Message& message, std::int64_t now_ms);
  void run_next(std::int64_t now_ms);
  void report(std::int64_t now_ms);
  void send_incompatible();
  void send(const Message& message) { transport_.send(coordinator_, encode(message)); }
  bool is_busy() const { return running_ || !queue_.empty() || stage_ != Stage::serving; }
  std::vector<std::uint32_t> missing_inputs_of(const Assignment& assignment) const;

  MessageTransport& transport_;
  int coordinator_;
  Simulator& simulator_;
  WorkerOptions options_;
  Stage stage_ = Stage::awaiting_job;
  std::string incompatible_reason_;
  bool out_of_memory_ = false;
  std::uint64_t signature_ = 0;
  std::uint64_t results_sent_ = 0;
  std::deque<Assignment> queue_;
  std::unordered_set<std::uint32_t> queued_;  // task numbers in queue_
  std::optional<std::uint32_t> running_;
  std::map<std::uint32_t, std::string> known_results_;  // results computed here or received
  std::int64_t heard_ms_ = 0, reported_ms_ = 0;
  bool heard_ = false;
  bool left_ = false, abandoned_ = false;
  HelpExchange help_;
};

}  // namespace manyworlds::farm
