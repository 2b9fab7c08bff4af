#include "farm/worker/simulator_zygote.hpp"

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
// The second try is in a fresh process, without what others left in its memory. What kills from outside may well
// strike twice by chance, not three times.
constexpr std::uint8_t kCrashTries = 2, kMemoryTries = 2, kKilledTries = 3, kTimeTries = 1;

/// Whether the process was refused memory.
bool ran_out(int wait_status) {
  return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kOutOfMemoryExit;
}
}  // namespace

Outcome describe_death(int wait_status) {
  if (WIFEXITED(wait_status))
    return {Status::crash, fmt::format("the simulator left with exit code {}", WEXITSTATUS(wait_status)), 0,
            kCrashTries};
  const int number = WTERMSIG(wait_status);
  // Nothing kills itself with these: it was the kernel short of memory, or a person.
  const bool from_outside = number == SIGKILL || number == SIGTERM || number == SIGHUP;
  return {from_outside ? Status::environment : Status::crash,
          fmt::format("the simulator died by SIG{} ({})", ::sigabbrev_np(number), ::sigdescr_np(number)), 0,
          from_outside ? kKilledTries : kCrashTries};
}

ZygoteSimulator::ZygoteSimulator(asio::io_context& context, Zygote& zygote, TaskLimits limits, Answers answers)
    : context_(context), zygote_(zygote), limits_(limits), answers_(std::move(answers)), clock_(context) {}

ZygoteSimulator::~ZygoteSimulator() {
  if (pid_ < 0) return;
  socket_.reset();
  ::kill(pid_, SIGKILL);  // it may be deep in a task; until it is reaped its number is nobody else's
  try {
    zygote_.reap(pid_);
  } catch (const std::exception&) {
    // The zygote is gone, and its workers went with it.
  }
}

void ZygoteSimulator::build(const std::string& common) {
  common_ = common;
  spawn();
}

void ZygoteSimulator::run(std::uint32_t task, const std::string& order, const std::vector<std::string>& inputs) {
  running_ = task;
  run_frame_ = run_request(task, order, inputs);
  if (ready_) begin_task();
}

void ZygoteSimulator::begin_task() {
  write(run_frame_);
  if (limits_.time.count() == 0) return;
  clock_.expires_after(limits_.time);
  clock_.async_wait([this, life = life_, task = running_](boost::system::error_code error) {
    if (error || life != life_ || task != running_) return;
    overdue_ = true;
    ::kill(pid_, SIGKILL);  // until it is reaped its number is nobody else's
  });
}

void ZygoteSimulator::spawn() {
  ++life_;
  ready_ = overdue_ = false;
  received_.clear();
  to_write_.clear();
  const Zygote::Simulating worker = zygote_.spawn(limits_.memory_bytes);
  pid_ = worker.pid;
  socket_.emplace(context_, asio::local::stream_protocol(), worker.socket);
  read();
  write(build_request(common_));
}

void ZygoteSimulator::read() {
  socket_->async_read_some(asio::buffer(chunk_),
                           [this, life = life_](boost::system::error_code error, std::size_t size) {
                             if (error == asio::error::operation_aborted || life != life_) return;
                             if (error) return died();
                             received_.append(chunk_.data(), size);
                             while (auto frame = take_frame(received_)) take(decode_reply(*frame));
                             read();
                           });
}

void ZygoteSimulator::write(std::string frame) {
  to_write_.push_back(framed(frame));
  if (to_write_.size() == 1) write_next();
}

void ZygoteSimulator::write_next() {
  asio::async_write(*socket_, asio::buffer(to_write_.front()),
                    [this, life = life_](boost::system::error_code error, std::size_t) {
                      if (error || life != life_) return;  // a process that died is noticed by the reader
                      to_write_.pop_front();
                      if (!to_write_.empty()) write_next();
                    });
}

void ZygoteSimulator::take(const SimulatorReply& reply) {
  switch (reply.kind) {
    case SimulatorReply::Kind::ready: {
      const bool waiting = running_.has_value();
      ready_ = true;
      deaths_while_building_ = 0;
      answers_.serves(reply.signature);
      if (waiting) begin_task();
      return;
    }
    case SimulatorReply::Kind::unfit:
      return answers_.unfit(reply.outcome.bytes, false);
    case SimulatorReply::Kind::computed:
      MANYWORLDS_CHECK(running_ == reply.task, "the simulator answered task {}, which it was not asked", reply.task);
      running_.reset();
      clock_.cancel();
      return answers_.computed(reply.task, reply.outcome);
  }
}

Outcome ZygoteSimulator::describe_end(int wait_status) const {
  if (overdue_)
    return {Status::environment,
            fmt::format("it ran longer than {} (--task-time)",
                        duration_text(std::chrono::duration<double>(limits_.time).count())),
            0, kTimeTries};
  if (ran_out(wait_status))
    return {Status::environment,
            limits_.memory_bytes == 0
                ? std::string("out of memory")
                : fmt::format("out of memory: it needs more than {} (--task-memory)", size_text(limits_.memory_bytes)),
            0, kMemoryTries};
  return describe_death(wait_status);
}

void ZygoteSimulator::died() {
  const int wait_status = zygote_.reap(pid_);
  const Outcome death = describe_end(wait_status);
  clock_.cancel();
  pid_ = -1;
  socket_.reset();
  const bool built = ready_;
  if (!built && ++deaths_while_building_ >= death.tries)
    return answers_.unfit(fmt::format("cannot serve the job: {}", death.bytes), !overdue_ && ran_out(wait_status));
  const auto lost = built ? std::exchange(running_, std::nullopt) : std::nullopt;
  spawn();
  if (lost) answers_.computed(*lost, death);
}

}  // namespace manyworlds::farm
