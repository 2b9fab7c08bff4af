#include "farm/transport_mpi.hpp"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/error.hpp"

namespace manyworlds::farm {

namespace {

constexpr int kTag = 0;
constexpr double kSendDeadline_s = 60;  // by then the rank is dead, not slow
constexpr std::chrono::seconds kFinalizeLimit{5};

void check(int code, const char* call) {
  MANYWORLDS_CHECK(code == MPI_SUCCESS, "{} gave {}", call, code);
}

}  // namespace

MpiTransport::MpiTransport() {
  check(MPI_Init(nullptr, nullptr), "MPI_Init");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &self_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
}

void MpiTransport::send(int to, std::string message) {
  if (to == self_) {
    to_self_.push_back({self_, std::move(message)});
    return;
  }
  if (unreachable_.contains(to)) return;
  MANYWORLDS_CHECK(message.size() < (std::size_t{1} << 31), "message of {} bytes", message.size());
  Sending& sending = sending_.emplace_back(Sending{MPI_REQUEST_NULL, std::move(message), to, MPI_Wtime()});
  check(MPI_Isend(sending.bytes.data(), static_cast<int>(sending.bytes.size()), MPI_BYTE, to, kTag, MPI_COMM_WORLD,
                  &sending.request),
        "MPI_Isend");
}

void MpiTransport::progress_sends() {
  const double now = MPI_Wtime();
  for (auto sending = sending_.begin(); sending != sending_.end();) {
    int done = 0;
    if (!unreachable_.contains(sending->to)) {
      check(MPI_Test(&sending->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      // MPI still owns the buffer of a send that does not end: it stays in the list for ever.
      if (done == 0 && now - sending->since > kSendDeadline_s) unreachable_.insert(sending->to);
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

void MpiTransport::leave(bool clean, int exit_code) {
  if (!clean || !unreachable_.empty() || !sending_.empty()) ::_exit(exit_code);
  // A rank may have died unnoticed; nothing is left to lose here but time.
  std::thread([exit_code] {
    std::this_thread::sleep_for(kFinalizeLimit);
    ::_exit(exit_code);
  }).detach();
  MPI_Finalize();
}

}  // namespace manyworlds::farm
