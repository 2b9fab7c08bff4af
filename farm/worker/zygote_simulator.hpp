// A simulator in a process of its own, which the zygote forks. When the process dies, the next one is forked, and the
// task that it ran gets an outcome that says how it died.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "farm/worker/simulating_worker.hpp"
#include "farm/worker/task_limits.hpp"
#include "farm/worker/worker.hpp"
#include "farm/worker/zygote.hpp"

namespace manyworlds::farm {

class ZygoteSimulator final : public Simulator {
 public:
  struct Callbacks {
    std::function<void(std::uint64_t signature)> serves;
    std::function<void(const std::string& reason, bool out_of_memory)> incompatible;
    std::function<void(std::uint32_t task, Outcome, std::uint64_t answers_used)> computed;
    std::function<void(std::uint64_t number, const std::string& question, std::uint64_t answers_used)> asks;
    std::function<void(std::uint64_t number, std::string answer, std::uint64_t us)> helped;
  };
  ZygoteSimulator(boost::asio::io_context& context, Zygote& zygote, TaskLimits limits, BuildOptions options,
                  Callbacks callbacks);
  ~ZygoteSimulator() override;

  void build(const std::string& common_spec) override;
  void run(std::uint32_t task, const std::string& spec, const std::vector<std::string>& inputs) override;
  void help(std::uint64_t number, const std::string& question) override;
  void answer(std::uint64_t number, const std::string& answer) override { write(answer_notice(number, answer)); }
  void allow_questions(std::size_t places) override { write(places_notice(places)); }

 private:
  void spawn();
  void read();
  void write(std::string frame);
  void write_next();
  void handle_reply(const SimulatorReply& reply);
  void begin_task();
  void on_death();
  Outcome describe_end(int wait_status) const;

  boost::asio::io_context& context_;
  Zygote& zygote_;
  TaskLimits limits_;
  BuildOptions options_;
  Callbacks callbacks_;
  boost::asio::steady_timer clock_;
  bool timed_out_ = false;  // killed because its task exceeded the time limit
  std::optional<boost::asio::local::stream_protocol::socket> socket_;
  pid_t pid_ = -1;
  std::uint64_t incarnation_ = 0;  // number of the current process, to discard callbacks of earlier ones
  std::string common_spec_;
  bool ready_ = false;
  int deaths_while_building_ = 0;
  std::optional<std::uint32_t> running_;
  std::optional<std::uint64_t> helping_;  // the number of the question
  std::string run_request_;               // request of the running task, kept for a process that has yet to build
  std::string received_;
  std::array<char, 65536> chunk_{};
  std::deque<std::string> to_write_;
};

/// Returns the outcome of a task whose process ended with `wait_status`: how it ended, whether the task itself caused
/// it, and how often it may happen before the task fails.
Outcome describe_death(int wait_status);

}  // namespace manyworlds::farm
