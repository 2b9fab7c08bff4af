#include "farm/protocol/transport_mpi.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/error.hpp"

namespace manyworlds::farm {

namespace {

constexpr int kTag = 0, kGoodbyeTag = 1, kLeader = 0;
constexpr double kHastyGoodbye_s = 2;  // to ranks that a failed run waits for no longer
constexpr std::chrono::seconds kFinalizeLimit{60};
constexpr std::chrono::milliseconds kLook{1};
constexpr char kFinalize = 'f', kNoFinalize = 'n';

void check(int code, const char* call) {
  MANYWORLDS_CHECK(code == MPI_SUCCESS, "{} gave {}", call, code);
}

}  // namespace

MpiTransport::MpiTransport(MpiPatience patience) : patience_(patience) {
  check(MPI_Init(nullptr, nullptr), "MPI_Init");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &self_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  heard_s_.assign(static_cast<std::size_t>(size_), MPI_Wtime());
}

void MpiTransport::send(int to, std::string message) {
  if (to == self_) {
    to_self_.push_back({self_, std::move(message)});
    return;
  }
  post(to, std::move(message), kTag);
}

void MpiTransport::post(int to, std::string message, int tag) {
  if (unreachable_.contains(to)) return;
  MANYWORLDS_CHECK(message.size() < (std::size_t{1} << 31), "message of {} bytes", message.size());
  Sending& sending = sending_.emplace_back(Sending{MPI_REQUEST_NULL, std::move(message), to, MPI_Wtime()});
  check(MPI_Isend(sending.bytes.data(), static_cast<int>(sending.bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD,
                  &sending.request),
        "MPI_Isend");
}

void MpiTransport::progress_sends() {
  const double now = MPI_Wtime(), deadline_s = self_ == kLeader ? patience_.send_s : patience_.leader_s;
  for (auto sending = sending_.begin(); sending != sending_.end();) {
    int done = 0;
    if (!unreachable_.contains(sending->to)) {
      check(MPI_Test(&sending->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      // MPI still owns the buffer of a send that does not end: it stays in the list for ever.
      if (done == 0 && now - sending->since > deadline_s) unreachable_.insert(sending->to);
    }
    sending = done != 0 ? sending_.erase(sending) : std::next(sending);
  }
}

void MpiTransport::start_receiving() {
  for (;;) {
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status), "MPI_Iprobe");
    if (there == 0) return;
    int size = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
    // Not MPI_Recv: a sender that dies in the middle of a long message would hold us for ever.
    Receiving& receiving = receiving_.emplace_back(
        Receiving{MPI_REQUEST_NULL, std::string(static_cast<std::size_t>(size), '\0'), status.MPI_SOURCE});
    check(
        MPI_Irecv(receiving.bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, kTag, MPI_COMM_WORLD, &receiving.request),
        "MPI_Irecv");
  }
}

std::optional<Envelope> MpiTransport::receive() {
  if (!to_self_.empty()) {
    Envelope first = std::move(to_self_.front());
    to_self_.pop_front();
    return first;
  }
  progress_sends();
  start_receiving();
  for (auto receiving = receiving_.begin(); receiving != receiving_.end(); ++receiving) {
    int done = 0;
    check(MPI_Test(&receiving->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) continue;
    heard_s_[static_cast<std::size_t>(receiving->from)] = MPI_Wtime();
    Envelope envelope{receiving->from, std::move(receiving->bytes)};
    receiving_.erase(receiving);
    return envelope;
  }
  return std::nullopt;
}

bool MpiTransport::flushed() {
  progress_sends();
  for (const auto& sending : sending_)
    if (!unreachable_.contains(sending.to)) return false;
  return to_self_.empty();
}

/// The goodbyes that came, by rank. A byte travels with its envelope, so that this receive does not wait.
void MpiTransport::hear_goodbyes(std::map<int, char>& goodbyes) {
  for (;;) {
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kGoodbyeTag, MPI_COMM_WORLD, &there, &status), "MPI_Iprobe");
    if (there == 0) return;
    char word = 0;
    check(MPI_Recv(&word, 1, MPI_BYTE, status.MPI_SOURCE, kGoodbyeTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    goodbyes[status.MPI_SOURCE] = word;
  }
}

/// Throws away what still comes, as a sender of something long cannot leave before it is taken, until `over`.
template <class Over>
void MpiTransport::take_until(Over over) {
  for (;;) {
    while (receive()) {
    }
    if (over()) return;
    std::this_thread::sleep_for(kLook);
  }
}

bool MpiTransport::part(bool clean) {
  std::map<int, char> goodbyes;
  const double begin_s = MPI_Wtime();
  if (self_ != kLeader) {
    if (!clean) return false;
    const auto alone = [&, parent = ::getppid()] {
      return ::getppid() != parent || MPI_Wtime() - begin_s > patience_.leader_s;
    };
    // Nobody waits for what we still send, but MPI_Finalize would until it is gone.
    take_until([&] { return flushed() || alone(); });
    post(kLeader, std::string(1, kFinalize), kGoodbyeTag);
    take_until([&] {
      hear_goodbyes(goodbyes);
      return !goodbyes.empty() || alone();
    });
    return !goodbyes.empty() && goodbyes.begin()->second == kFinalize;
  }
  const auto lost = [&](int rank) {
    const double now_s = MPI_Wtime();
    return unreachable_.contains(rank) || (now_s - heard_s_[static_cast<std::size_t>(rank)] > patience_.silence_s &&
                                           now_s - begin_s > patience_.least_s);
  };
  if (clean)
    take_until([&] {
      hear_goodbyes(goodbyes);
      for (int rank = 1; rank < size_; ++rank)
        if (!goodbyes.contains(rank) && lost(rank)) clean = false;
      return !clean || static_cast<int>(goodbyes.size()) == size_ - 1;
    });
  for (int rank = 1; rank < size_; ++rank) post(rank, std::string(1, clean ? kFinalize : kNoFinalize), kGoodbyeTag);
  const double told_s = MPI_Wtime();
  take_until([&] { return flushed() || MPI_Wtime() - told_s > (clean ? patience_.send_s : kHastyGoodbye_s); });
  return clean && unreachable_.empty() && sending_.empty();
}

void MpiTransport::leave(bool clean, int exit_code) {
  if (!part(clean)) ::_exit(exit_code);
  // All ranks have said that they come; one may still die on its way.
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
