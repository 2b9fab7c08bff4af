// The zygote: a process forked before MPI and before any thread, which forks the simulating workers. Forking is safe
// only there. A simulation that crashes ends only its worker, and the zygote forks another. If the zygote itself is
// killed, the program is started once more as a zygote.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "farm/protocol/job.hpp"

namespace manyworlds::farm {

class Zygote {
 public:
  /// Forks. Must be the first action of the process, while it has no threads. In a process that restart() started as a
  /// zygote, it never returns.
  explicit Zygote(JobKind kind);
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  struct SimulatingProcess {
    int socket = -1;  // carries frames to and from the worker (farm/worker/simulating_worker.hpp); closed by the caller
    pid_t pid = -1;
  };
  /// Forks a worker, limited to `memory_bytes` of address space (0: no limit). Throws core::IoError if no process can
  /// be forked.
  SimulatingProcess spawn(std::uint64_t memory_bytes);
  /// Waits for a worker that was killed or whose socket has closed, and returns its wait status. A worker that died
  /// with its zygote counts as killed by SIGKILL.
  int reap(pid_t pid);

  const JobKind& kind() const { return kind_; }

 private:
  void restart();
  void stop_zygote();

  JobKind kind_;
  int control_ = -1;
  pid_t pid_ = -1;
};

}  // namespace manyworlds::farm
