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
constexpr milliseconds kPause{1'000};         // between looks at messages: something held this process up
constexpr std::int64_t kLook_ms = 15'000;     // without a word of the coordinator, and between looks whether it lives
constexpr std::int64_t kFarewell_ms = 3'000;  // what the last messages may take to leave
// Polling backs off with the time since the last message: fast in a conversation, 25 looks a second in silence.
constexpr microseconds kFastestPoll{50}, kSlowestPoll{40'000};

}  // namespace

void hold_drain_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void release_drain_signal() {
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
      busy_(begin_),
      ran_(begin_),
      parent_(::getppid()) {}

RankLoop::~RankLoop() = default;

std::int64_t RankLoop::now_ms() const {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin_ - paused_).count();
}

void RankLoop::add_worker(Transport& transport) {
  auto seat = std::make_unique<Seat>();
  Seat* at = seat.get();
  at->transport = &transport;
  at->simulator = std::make_unique<ZygoteSimulator>(
      context_, zygote_, options_.limits,
      ZygoteSimulator::Answers{[this, at](std::uint64_t signature) {
                                 at->worker->serves(signature, now_ms());
                                 pump();
                               },
                               [this, at](const std::string& reason, bool out_of_memory) {
                                 at->worker->unfit(reason, out_of_memory);
                                 pump();
                               },
                               [this, at](std::uint32_t task, Outcome outcome) {
                                 at->worker->computed(task, std::move(outcome), now_ms());
                                 pump();
                               }});
  at->worker = std::make_unique<Worker>(transport, 0, *at->simulator, now_ms(), options_.worker);
  seats_.push_back(std::move(seat));
}

void RankLoop::coordinate(Coordinator& coordinator, std::function<void()> each_second) {
  MANYWORLDS_CHECK(!seats_.empty() && seats_.front()->transport->self() == 0, "rank 0 coordinates");
  coordinator_ = &coordinator;
  each_second_ = std::move(each_second);
  signals_.add(SIGUSR1);
  signals_.add(SIGTERM);
  if (options_.drain_on_ctrl_c) signals_.add(SIGINT);
  release_drain_signal();
  await_signal();
}

void RankLoop::await_signal() {
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    // Asked by SIGTERM or Ctrl-C once more, it ends now: what is journalled stays, nothing else is owed.
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
  leave_out_pause();
  bool any = false, moved = true;
  while (moved) {
    moved = false;
    for (const auto& seat : seats_) {
      while (const auto envelope = seat->transport->receive()) {
        moved = any = true;
        const Message message = decode_message(envelope->message);
        if (!for_coordinator(message.kind)) {
          seat->worker->receive(message, now_ms());
        } else if (coordinator_ != nullptr && seat->transport->self() == 0) {
          coordinator_->receive(envelope->from, message, now_ms());
        } else {
          MANYWORLDS_CHECK(false, "rank {} does not coordinate", seat->transport->self());
        }
      }
    }
    if (coordinator_ != nullptr && dismissed_ms_ < 0 && coordinator_->finished(now_ms())) {
      dismissed_ms_ = now_ms();
      coordinator_->dismiss();
      moved = true;
    }
  }
  if (any) busy_ = steady_clock::now();
  stop_when_over();
  return any;
}

void RankLoop::stop_when_over() {
  bool over = true;
  for (const auto& seat : seats_)
    if (!seat->worker->left() || !seat->transport->flushed()) over = false;
  if (coordinator_ != nullptr && dismissed_ms_ < 0) over = false;
  if (dismissed_ms_ >= 0 && now_ms() - dismissed_ms_ > kFarewell_ms) over = true;
  for (const auto& seat : seats_) abandoned_ |= coordinator_ == nullptr && seat->worker->abandoned();
  if (over || abandoned_) context_.stop();
}

void RankLoop::poll() {
  pump();
  const auto idle = std::chrono::duration_cast<microseconds>(steady_clock::now() - busy_);
  poll_timer_.expires_after(std::clamp(idle / 8, kFastestPoll, kSlowestPoll));
  poll_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) poll();
  });
}

/// The death of a coordinating rank shows in the run directory at once, its silence only after long: it may be
/// planning.
void RankLoop::look_for_coordinator(std::int64_t now) {
  if (!options_.coordinated || now - last_look_ms_ < kLook_ms) return;
  for (const auto& seat : seats_) {
    if (seat->worker->left() || seat->worker->silence_ms(now) < kLook_ms) continue;
    last_look_ms_ = now;
    if (!options_.coordinated()) abandoned_ = true;
    return;
  }
}

void RankLoop::leave_out_pause() {
  const auto now = steady_clock::now();
  if (now - ran_ > kPause) paused_ += now - ran_;
  ran_ = now;
}

void RankLoop::tick() {
  leave_out_pause();
  const std::int64_t now = now_ms();
  if (options_.watch_parent && ::getppid() != parent_) {
    abandoned_ = true;
    context_.stop();
    return;
  }
  for (const auto& seat : seats_) seat->worker->tick(now);
  look_for_coordinator(now);
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
  ran_ = steady_clock::now();
  boost::asio::post(context_, [this] { tick(); });
  boost::asio::post(context_, [this] { poll(); });
  context_.run();
}

}  // namespace manyworlds::farm
