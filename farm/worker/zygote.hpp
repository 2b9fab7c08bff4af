// A process forked before MPI and before any thread, which forks the simulating workers: forking is safe there and
// nowhere later. A simulation that crashes takes a worker with it; the next one is a fork away. Where the zygote itself
// is killed, the program is started once more as a zygote.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "farm/protocol/job.hpp"

namespace manyworlds::farm {

class Zygote {
 public:
  /// Forks. Must be the first thing a process does; the caller must have no threads. In a process that was started to
  /// be a zygote, as start_again() does, it never returns.
  explicit Zygote(JobKind kind);
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  struct Simulating {
    int socket = -1;  // frames to and from the worker (farm/worker/simulating_worker.hpp); the caller closes it
    pid_t pid = -1;
  };
  /// `memory_bytes` as of TaskLimits. Throws IoError where no process can be forked.
  Simulating spawn(std::uint64_t memory_bytes);
  /// Waits for a worker whose socket has closed (or that was killed) and gives its wait status. One that died with its
  /// zygote was killed by SIGKILL.
  int reap(pid_t pid);

  const JobKind& kind() const { return kind_; }

 private:
  void start_again();
  void let_go();

  JobKind kind_;
  int control_ = -1;
  pid_t pid_ = -1;
};

}  // namespace manyworlds::farm
