#include "farm/protocol/mpi_transport.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/error.hpp"

namespace manyworlds::farm {

namespace {

constexpr int kTag = 0, kGoodbyeTag = 1, kLeader = 0;
constexpr double kFailedGoodbye_s = 2;  // limit for the goodbyes of a failed run, which waits for nobody
constexpr std::chrono::seconds kFinalizeLimit{60};
constexpr std::chrono::milliseconds kPollInterval{1};
constexpr char kFinalize = 'f', kNoFinalize = 'n';

void check(int code, const char* call) {
  MANYWORLDS_CHECK(code == MPI_SUCCESS, "{} gave {}", call, code);
}

/// Returns the envelope of a message that waits to be received; nothing if none does.
std::optional<MPI_Status> waiting(int tag) {
  int is_waiting = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &is_waiting, &status), "MPI_Iprobe");
  return is_waiting == 0 ? std::nullopt : std::optional(status);
}

}  // namespace

MpiTransport::MpiTransport(MpiTimeouts timeouts) : timeouts_(timeouts) {
  check(MPI_Init(nullptr, nullptr), "MPI_Init");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &self_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  last_heard_s_.assign(static_cast<std::size_t>(size_), MPI_Wtime());
}

void MpiTransport::send(int to, std::string message) {
  if (to == self_) {
    loopback_.push_back({self_, std::move(message)});
    return;
  }
  post(to, std::move(message), kTag);
}

void MpiTransport::post(int to, std::string message, int tag) {
  if (unreachable_.contains(to)) return;
  MANYWORLDS_CHECK(message.size() < (std::size_t{1} << 31), "message of {} bytes", message.size());
  PendingSend& sending =
      pending_sends_.emplace_back(PendingSend{MPI_REQUEST_NULL, std::move(message), to, MPI_Wtime()});
  check(MPI_Isend(sending.bytes.data(), static_cast<int>(sending.bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD,
                  &sending.request),
        "MPI_Isend");
}

void MpiTransport::test_sends() {
  const double now = MPI_Wtime(), deadline_s = self_ == kLeader ? timeouts_.send_s : timeouts_.leader_s;
  for (auto sending = pending_sends_.begin(); sending != pending_sends_.end();) {
    int done = 0;
    if (!unreachable_.contains(sending->to)) {
      check(MPI_Test(&sending->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      // MPI still owns the buffer of a send that never completes, so the entry stays in the list forever.
      if (done == 0 && now - sending->posted_s > deadline_s) unreachable_.insert(sending->to);
    }
    sending = done != 0 ? pending_sends_.erase(sending) : std::next(sending);
  }
}

void MpiTransport::post_receives() {
  while (const auto status = waiting(kTag)) {
    int size = 0;
    check(MPI_Get_count(&*status, MPI_BYTE, &size), "MPI_Get_count");
    // MPI_Recv would block forever if a sender died in the middle of a long message.
    PendingReceive& receiving = pending_receives_.emplace_back(
        PendingReceive{MPI_REQUEST_NULL, std::string(static_cast<std::size_t>(size), '\0'), status->MPI_SOURCE});
    check(
        MPI_Irecv(receiving.bytes.data(), size, MPI_BYTE, status->MPI_SOURCE, kTag, MPI_COMM_WORLD, &receiving.request),
        "MPI_Irecv");
  }
}

std::optional<Envelope> MpiTransport::receive() {
  if (!loopback_.empty()) {
    Envelope first = std::move(loopback_.front());
    loopback_.pop_front();
    return first;
  }
  test_sends();
  post_receives();
  for (auto receiving = pending_receives_.begin(); receiving != pending_receives_.end(); ++receiving) {
    int done = 0;
    check(MPI_Test(&receiving->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) continue;
    last_heard_s_[static_cast<std::size_t>(receiving->from)] = MPI_Wtime();
    Envelope envelope{receiving->from, std::move(receiving->bytes)};
    pending_receives_.erase(receiving);
    return envelope;
  }
  return std::nullopt;
}

bool MpiTransport::flushed() {
  test_sends();
  for (const auto& sending : pending_sends_)
    if (!unreachable_.contains(sending.to)) return false;
  return loopback_.empty();
}

/// Collects the goodbyes that have arrived, by rank. One byte travels with its envelope, so that this MPI_Recv does not
/// block.
void MpiTransport::receive_goodbyes(std::map<int, char>& goodbyes) {
  while (const auto status = waiting(kGoodbyeTag)) {
    char goodbye = 0;
    check(MPI_Recv(&goodbye, 1, MPI_BYTE, status->MPI_SOURCE, kGoodbyeTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
          "MPI_Recv");
    goodbyes[status->MPI_SOURCE] = goodbye;
  }
}

/// Receives and discards messages until `over()`: a sender of a long message cannot leave before it has been received.
template <class Condition>
void MpiTransport::discard_until(Condition condition) {
  for (;;) {
    while (receive()) {
    }
    if (condition()) return;
    std::this_thread::sleep_for(kPollInterval);
  }
}

bool MpiTransport::exchange_goodbyes(bool orderly) {
  std::map<int, char> goodbyes;
  const double begin_s = MPI_Wtime();
  if (self_ != kLeader) {
    if (!orderly) return false;
    const auto alone = [&, parent = ::getppid()] {
      return ::getppid() != parent || MPI_Wtime() - begin_s > timeouts_.leader_s;
    };
    // Nobody waits for the remaining sends, but MPI_Finalize would block until they have completed.
    discard_until([&] { return flushed() || alone(); });
    post(kLeader, std::string(1, kFinalize), kGoodbyeTag);
    discard_until([&] {
      receive_goodbyes(goodbyes);
      return !goodbyes.empty() || alone();
    });
    return !goodbyes.empty() && goodbyes.begin()->second == kFinalize;
  }
  const auto lost = [&](int rank) {
    const double now_s = MPI_Wtime();
    return unreachable_.contains(rank) ||
           (now_s - last_heard_s_[static_cast<std::size_t>(rank)] > timeouts_.silence_s &&
            now_s - begin_s > timeouts_.min_wait_s);
  };
  if (orderly)
    discard_until([&] {
      receive_goodbyes(goodbyes);
      for (int rank = 1; rank < size_; ++rank)
        if (!goodbyes.contains(rank) && lost(rank)) orderly = false;
      return !orderly || static_cast<int>(goodbyes.size()) == size_ - 1;
    });
  for (int rank = 1; rank < size_; ++rank) post(rank, std::string(1, orderly ? kFinalize : kNoFinalize), kGoodbyeTag);
  const double announced_s = MPI_Wtime();
  discard_until(
      [&] { return flushed() || MPI_Wtime() - announced_s > (orderly ? timeouts_.send_s : kFailedGoodbye_s); });
  return orderly && unreachable_.empty() && pending_sends_.empty();
}

void MpiTransport::leave(bool orderly, int exit_code) {
  if (!exchange_goodbyes(orderly)) ::_exit(exit_code);
  // All ranks have announced MPI_Finalize, but one may still die before it gets there.
  std::mutex mutex;
  std::condition_variable finalized;
  bool done = false;
  std::thread guard([&] {
    std::unique_lock lock(mutex);
    if (!finalized.wait_for(lock, kFinalizeLimit, [&] { return done; })) ::_exit(exit_code);
  });
  MPI_Finalize();
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  finalized.notify_one();
  guard.join();
}

}  // namespace manyworlds::farm
