// Work ahead that goes from one worker to another: the running task asks those that have nothing to do, and this worker
// answers others while it has nothing to do. Nothing depends on an answer, so a question may be refused or lost.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "farm/protocol/message.hpp"
#include "farm/protocol/message_transport.hpp"

namespace manyworlds::farm {

class Simulator;

class HelpExchange {
 public:
  /// A question not answered for `answer_ms` is given up, with who was asked.
  HelpExchange(MessageTransport& transport, Simulator& simulator, std::int64_t answer_ms)
      : transport_(transport), simulator_(simulator), answer_ms_(answer_ms) {}

  /// Takes the ranks that may be asked from now on.
  void set_helpers(const std::vector<std::uint32_t>& ranks);
  /// The simulator asks for its task.
  void asks(std::uint64_t number, const std::string& question, std::int64_t now_ms);
  /// Hears another worker; a question is refused if this one `is_busy`.
  void hear(int from, const Message& message, bool is_busy);
  /// The simulator has answered the question that it was given; "" if it could not.
  void helped(std::uint64_t number, std::string answer, std::uint64_t us);
  /// Refuses the questions that wait, as this worker has a task of its own.
  void refuse_waiting();
  /// The simulator has used so many answers since it started; it may have started anew.
  void count_used(std::uint64_t answers_used);
  void tick(std::int64_t now_ms);

  const Help& help() const { return help_; }

 private:
  struct Asked {
    int helper;
    std::uint64_t number;  // the simulator's
    std::int64_t at_ms;
  };
  struct Question {
    int from;
    std::uint64_t number;  // the asker's
    std::string text;
  };
  void send(int to, const Message& message) { transport_.send(to, encode(message)); }
  void refuse(const Question& question);
  void answered(int helper, std::uint64_t number, const std::string& answer);
  void give_up(int helper);
  void allow();

  MessageTransport& transport_;
  Simulator& simulator_;
  std::int64_t answer_ms_;
  std::map<int, std::size_t> helpers_;  // questions under way by rank
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t questions_sent_ = 0;
  std::deque<Question> waiting_;
  std::optional<Question> answering_;
  std::uint64_t questions_given_ = 0;  // to the simulator
  std::uint64_t last_used_ = 0;
  Help help_;
};

}  // namespace manyworlds::farm
