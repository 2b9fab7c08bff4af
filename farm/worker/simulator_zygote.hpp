// A simulator in a process of its own, forked by the zygote. When it dies the next is forked, and the task it ran is
// answered with how it died.
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
  struct Answers {
    std::function<void(std::uint64_t signature)> serves;
    std::function<void(const std::string& reason, bool out_of_memory)> unfit;
    std::function<void(std::uint32_t task, Outcome)> computed;
  };
  ZygoteSimulator(boost::asio::io_context& context, Zygote& zygote, TaskLimits limits, Answers answers);
  ~ZygoteSimulator() override;

  void build(const std::string& common) override;
  void run(std::uint32_t task, const std::string& order, const std::vector<std::string>& inputs) override;

 private:
  void spawn();
  void read();
  void write(std::string frame);
  void write_next();
  void take(const SimulatorReply& reply);
  void begin_task();
  void died();
  Outcome describe_end(int wait_status) const;

  boost::asio::io_context& context_;
  Zygote& zygote_;
  TaskLimits limits_;
  Answers answers_;
  boost::asio::steady_timer clock_;
  bool overdue_ = false;  // killed for the time its task took
  std::optional<boost::asio::local::stream_protocol::socket> socket_;
  pid_t pid_ = -1;
  std::uint64_t life_ = 0;  // answers of an earlier process are not taken for the present one's
  std::string common_;
  bool ready_ = false;
  int deaths_while_building_ = 0;
  std::optional<std::uint32_t> running_;
  std::string run_frame_;  // of the running task, for a process that has yet to build
  std::string received_;
  std::array<char, 65536> chunk_{};
  std::deque<std::string> to_write_;
};

/// In words how a process ended, whether that was its own doing, and how often it may happen to a task.
Outcome describe_death(int wait_status);

}  // namespace manyworlds::farm
