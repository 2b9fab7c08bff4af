#include "farm/worker/zygote_simulator.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstring>

#include "core/base/error.hpp"
#include "farm/protocol/frame.hpp"
#include "farm/status/progress.hpp"
#include "farm/system/size_text.hpp"

namespace manyworlds::farm {

namespace asio = boost::asio;

namespace {
// A retry runs in a fresh process, without memory that other tasks left behind. An outside cause may kill a task twice
// by chance, but hardly three times.
constexpr std::uint8_t kCrashTries = 2, kMemoryTries = 2, kKilledTries = 3, kTimeTries = 1;

/// Returns whether an allocation was refused in the process.
bool ran_out_of_memory(int wait_status) {
  return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kOutOfMemoryExit;
}
}  // namespace

Outcome describe_death(int wait_status) {
  if (WIFEXITED(wait_status))
    return {Status::crash, fmt::format("the simulator left with exit code {}", WEXITSTATUS(wait_status)), 0,
            kCrashTries};
  const int number = WTERMSIG(wait_status);
  // No program raises these signals itself: they come from the kernel when memory is short, or from a person.
  const bool from_outside = number == SIGKILL || number == SIGTERM || number == SIGHUP;
  return {from_outside ? Status::environment : Status::crash,
          fmt::format("the simulator died by SIG{} ({})", ::sigabbrev_np(number), ::sigdescr_np(number)), 0,
          from_outside ? kKilledTries : kCrashTries};
}

ZygoteSimulator::ZygoteSimulator(asio::io_context& context, Zygote& zygote, TaskLimits limits, BuildOptions options,
                                 Callbacks callbacks)
    : context_(context),
      zygote_(zygote),
      limits_(limits),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      clock_(context) {}

ZygoteSimulator::~ZygoteSimulator() {
  if (pid_ < 0) return;
  socket_.reset();
  ::kill(pid_, SIGKILL);  // it may be deep in a task; its pid cannot be reused before it is reaped
  try {
    zygote_.reap(pid_);
  } catch (const std::exception&) {
    // The zygote is gone, and its workers died with it.
  }
}

void ZygoteSimulator::build(const std::string& common_spec) {
  common_spec_ = common_spec;
  spawn();
}

void ZygoteSimulator::run(std::uint32_t task, const std::string& spec, const std::vector<std::string>& inputs) {
  running_ = task;
  run_request_ = run_request(task, spec, inputs);
  if (ready_) begin_task();
}

void ZygoteSimulator::help(std::uint64_t number, const std::string& question) {
  helping_ = number;
  write(help_request(number, question));
}

void ZygoteSimulator::begin_task() {
  write(run_request_);
  if (limits_.time.count() == 0) return;
  clock_.expires_after(limits_.time);
  clock_.async_wait([this, incarnation = incarnation_, task = running_](boost::system::error_code error) {
    if (error || incarnation != incarnation_ || task != running_) return;
    timed_out_ = true;
    ::kill(pid_, SIGKILL);  // its pid cannot be reused before it is reaped
  });
}

void ZygoteSimulator::spawn() {
  ++incarnation_;
  ready_ = timed_out_ = false;
  received_.clear();
  to_write_.clear();
  const Zygote::SimulatingProcess worker = zygote_.spawn(address_space_of(limits_));
  pid_ = worker.pid;
  socket_.emplace(context_, asio::local::stream_protocol(), worker.socket);
  read();
  write(build_request(common_spec_, options_));
}

void ZygoteSimulator::read() {
  socket_->async_read_some(asio::buffer(chunk_),
                           [this, incarnation = incarnation_](boost::system::error_code error, std::size_t size) {
                             if (error == asio::error::operation_aborted || incarnation != incarnation_) return;
                             if (error) return on_death();
                             received_.append(chunk_.data(), size);
                             while (auto frame = extract_frame(received_)) handle_reply(decode_reply(*frame));
                             read();
                           });
}

void ZygoteSimulator::write(std::string frame) {
  if (!socket_) return;  // no process: what it would be told is of the past
  to_write_.push_back(frame_of(frame));
  if (to_write_.size() == 1) write_next();
}

void ZygoteSimulator::write_next() {
  asio::async_write(*socket_, asio::buffer(to_write_.front()),
                    [this, incarnation = incarnation_](boost::system::error_code error, std::size_t) {
                      if (error || incarnation != incarnation_) return;  // the reader handles the death of the process
                      to_write_.pop_front();
                      if (!to_write_.empty()) write_next();
                    });
}

void ZygoteSimulator::handle_reply(const SimulatorReply& reply) {
  switch (reply.kind) {
    case SimulatorReply::Kind::ready: {
      const bool waiting = running_.has_value();
      ready_ = true;
      deaths_while_building_ = 0;
      callbacks_.serves(reply.signature);
      if (waiting) begin_task();
      return;
    }
    case SimulatorReply::Kind::incompatible:
      return callbacks_.incompatible(reply.outcome.bytes, false);
    case SimulatorReply::Kind::computed:
      MANYWORLDS_CHECK(running_ == reply.task, "the simulator answered task {}, which it was not asked", reply.task);
      running_.reset();
      clock_.cancel();
      return callbacks_.computed(reply.task, reply.outcome, reply.used);
    case SimulatorReply::Kind::asks:
      return callbacks_.asks(reply.number, reply.text, reply.used);
    case SimulatorReply::Kind::helped:
      MANYWORLDS_CHECK(helping_ == reply.number, "the simulator answered question {}, which it was not asked",
                       reply.number);
      helping_.reset();
      return callbacks_.helped(reply.number, reply.text, reply.helped_us);
  }
}

Outcome ZygoteSimulator::describe_end(int wait_status) const {
  if (timed_out_)
    return {Status::environment,
            fmt::format("it ran longer than {} (--task-time)",
                        duration_text(std::chrono::duration<double>(limits_.time).count())),
            0, kTimeTries};
  if (ran_out_of_memory(wait_status))
    return {Status::environment,
            limits_.memory_bytes == 0
                ? std::string("out of memory")
                : fmt::format("out of memory: it needs more than {} (--task-memory)", size_text(limits_.memory_bytes)),
            0, kMemoryTries};
  return describe_death(wait_status);
}

void ZygoteSimulator::on_death() {
  const int wait_status = zygote_.reap(pid_);
  const Outcome death = describe_end(wait_status);
  clock_.cancel();
  pid_ = -1;
  socket_.reset();
  const bool had_built = ready_;
  if (!had_built && ++deaths_while_building_ >= death.max_failures)
    return callbacks_.incompatible(fmt::format("cannot serve the job: {}", death.bytes),
                                   !timed_out_ && ran_out_of_memory(wait_status));
  const auto interrupted_task = had_built ? std::exchange(running_, std::nullopt) : std::nullopt;
  const auto unanswered = std::exchange(helping_, std::nullopt);
  spawn();
  if (unanswered) callbacks_.helped(*unanswered, "", 0);
  if (interrupted_task) callbacks_.computed(*interrupted_task, death, 0);
}

}  // namespace manyworlds::farm
