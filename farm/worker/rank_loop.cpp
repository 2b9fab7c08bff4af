#include "farm/worker/rank_loop.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "core/base/error.hpp"

namespace manyworlds::farm {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kTick{200};
constexpr milliseconds kMaxGap{1'000};  // a longer gap between two polls means that the process was suspended
constexpr std::int64_t kLivenessCheck_ms =
    15'000;  // minimum silence of the coordinator, and interval, of liveness checks
constexpr std::int64_t kFlushTimeout_ms = 3'000;  // time limit for flushing the last messages
// The polling interval grows with the time since the last message: short during traffic, 25 polls a second in silence.
constexpr microseconds kFastestPoll{50}, kSlowestPoll{40'000};

/// Blocks or unblocks Ctrl-C; returns whether it was blocked.
bool set_ctrl_c(int how) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(how, &set, &before);
  return sigismember(&before, SIGINT) == 1;
}

}  // namespace

void block_drain_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void unblock_drain_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

RankLoop::RankLoop(Zygote& zygote, LoopOptions options)
    : zygote_(zygote),
      options_(options),
      poll_timer_(context_),
      tick_timer_(context_),
      signals_(context_),
      begin_(steady_clock::now()),
      last_message_(begin_),
      last_run_(begin_),
      parent_(::getppid()) {}

RankLoop::~RankLoop() {
  if (blocks_ctrl_c_) set_ctrl_c(SIG_BLOCK);
}

std::int64_t RankLoop::now_ms() const {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin_ - paused_).count();
}

void RankLoop::add_worker(MessageTransport& transport) {
  auto local = std::make_unique<LocalWorker>();
  LocalWorker* at = local.get();
  at->transport = &transport;
  at->simulator = std::make_unique<ZygoteSimulator>(
      context_, zygote_, options_.limits,
      BuildOptions{options_.limits.threads, transport.size() > 1, options_.components},
      ZygoteSimulator::Callbacks{
          [this, at](std::uint64_t signature) {
            at->worker->serves(signature, now_ms());
            pump();
          },
          [this, at](const std::string& reason, bool out_of_memory) {
            at->worker->incompatible(reason, out_of_memory);
            pump();
          },
          [this, at](std::uint32_t task, Outcome outcome, std::uint64_t answers_used) {
            at->worker->computed(task, std::move(outcome), now_ms(), answers_used);
            pump();
          },
          [this, at](std::uint64_t number, const std::string& question, std::uint64_t answers_used) {
            at->worker->asks(number, question, now_ms(), answers_used);
            pump();
          },
          [this, at](std::uint64_t number, std::string answer, std::uint64_t us) {
            at->worker->helped(number, std::move(answer), us);
            pump();
          }});
  at->worker = std::make_unique<Worker>(transport, 0, *at->simulator, now_ms(), options_.worker);
  local_workers_.push_back(std::move(local));
}

void RankLoop::coordinate(Coordinator& coordinator, std::function<void()> each_second) {
  MANYWORLDS_CHECK(!local_workers_.empty() && local_workers_.front()->transport->self() == 0, "rank 0 coordinates");
  coordinator_ = &coordinator;
  each_second_ = std::move(each_second);
  signals_.add(SIGUSR1);
  signals_.add(SIGTERM);
  if (options_.drain_on_ctrl_c) {
    signals_.add(SIGINT);
    blocks_ctrl_c_ = set_ctrl_c(SIG_UNBLOCK);
  }
  unblock_drain_signal();
  await_signal();
}

void RankLoop::await_signal() {
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    // A second SIGTERM or Ctrl-C ends the process now; everything worth keeping is already in the journal.
    if (signal != SIGUSR1 && coordinator_->draining()) {
      ::signal(signal, SIG_DFL);
      ::raise(signal);
    }
    coordinator_->drain(now_ms());
    pump();
    await_signal();
  });
}

bool RankLoop::pump() {
  exclude_pause();
  bool received = false, progressed = true;
  while (progressed) {
    progressed = false;
    for (const auto& local : local_workers_) {
      while (const auto envelope = local->transport->receive()) {
        progressed = received = true;
        const Message message = decode_message(envelope->message);
        if (for_another_worker(message.kind)) {
          local->worker->hear(envelope->from, message);
        } else if (!for_coordinator(message.kind)) {
          local->worker->receive(message, now_ms());
        } else if (coordinator_ != nullptr && local->transport->self() == 0) {
          coordinator_->receive(envelope->from, message, now_ms());
        } else {
          MANYWORLDS_CHECK(false, "rank {} does not coordinate", local->transport->self());
        }
      }
    }
    if (coordinator_ != nullptr && dismissed_ms_ < 0 && coordinator_->finished(now_ms())) {
      dismissed_ms_ = now_ms();
      coordinator_->dismiss();
      progressed = true;
    }
  }
  if (received) last_message_ = steady_clock::now();
  stop_when_over();
  return received;
}

void RankLoop::stop_when_over() {
  bool finished = true;
  for (const auto& local : local_workers_)
    if (!local->worker->left() || !local->transport->flushed()) finished = false;
  if (coordinator_ != nullptr && dismissed_ms_ < 0) finished = false;
  if (dismissed_ms_ >= 0 && now_ms() - dismissed_ms_ > kFlushTimeout_ms) finished = true;
  for (const auto& local : local_workers_) abandoned_ |= coordinator_ == nullptr && local->worker->abandoned();
  if (finished || abandoned_) context_.stop();
}

void RankLoop::poll() {
  pump();
  const auto idle = std::chrono::duration_cast<microseconds>(steady_clock::now() - last_message_);
  poll_timer_.expires_after(std::clamp(idle / 8, kFastestPoll, kSlowestPoll));
  poll_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) poll();
  });
}

/// The run directory shows at once that the coordinating rank has died. Its silence alone shows that only after a long
/// time, because it may be planning.
void RankLoop::check_coordinator(std::int64_t now) {
  if (!options_.coordinator_may_live || now - last_check_ms_ < kLivenessCheck_ms) return;
  for (const auto& local : local_workers_) {
    if (local->worker->left() || local->worker->silence_ms(now) < kLivenessCheck_ms) continue;
    last_check_ms_ = now;
    if (!options_.coordinator_may_live()) abandoned_ = true;
    return;
  }
}

void RankLoop::exclude_pause() {
  const auto now = steady_clock::now();
  if (now - last_run_ > kMaxGap) paused_ += now - last_run_;
  last_run_ = now;
}

void RankLoop::tick() {
  exclude_pause();
  const std::int64_t now = now_ms();
  if (options_.watch_parent && ::getppid() != parent_) {
    abandoned_ = true;
    context_.stop();
    return;
  }
  for (const auto& local : local_workers_) local->worker->tick(now);
  check_coordinator(now);
  if (coordinator_ != nullptr && now - last_second_ms_ >= 1'000) {
    last_second_ms_ = now;
    if (options_.drain_after && steady_clock::now() - begin_ >= *options_.drain_after) coordinator_->drain(now);
    coordinator_->tick(now);
    each_second_();
  }
  pump();
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) tick();
  });
}

void RankLoop::run() {
  last_run_ = steady_clock::now();
  boost::asio::post(context_, [this] { tick(); });
  boost::asio::post(context_, [this] { poll(); });
  context_.run();
}

}  // namespace manyworlds::farm
