// The event loop of one process: its workers and, in one process, the coordinator. It is driven by messages, timers,
// signals and the sockets of simulators. It never blocks and never simulates.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "farm/coordinator/coordinator.hpp"
#include "farm/worker/worker.hpp"
#include "farm/worker/zygote_simulator.hpp"

namespace manyworlds::farm {

struct LoopOptions {
  WorkerOptions worker;
  bool watch_parent = false;  // leave when the parent process (the mpirun of a rank) is gone
  bool drain_on_ctrl_c = false;
  TaskLimits limits = {};
  std::string components = {};                                // see RunnerOptions
  std::optional<std::chrono::milliseconds> drain_after = {};  // for the coordinating process only
  std::function<bool()> coordinator_may_live = {};  // for a follower: false once no process can be coordinating
};

class RankLoop {
 public:
  RankLoop(Zygote& zygote, LoopOptions options);
  ~RankLoop();

  /// Adds a worker at `transport`, which must outlive the loop.
  void add_worker(MessageTransport& transport);
  /// Makes this process the coordinator, on the transport of its first worker. Calls `each_second` about once a second.
  void coordinate(Coordinator& coordinator, std::function<void()> each_second);
  /// Runs until the run is over in this process. SIGUSR1 or SIGTERM to the coordinating process starts draining.
  void run();

  /// Returns the time during which this process has run its loop. Time in which it was stopped or busy does not count:
  /// it could hear nobody then, so that is no silence of the others.
  std::int64_t now_ms() const;
  /// Returns true if the loop ended without a word from the coordinator, or because the parent process is gone.
  bool abandoned() const { return abandoned_; }

 private:
  struct LocalWorker {
    MessageTransport* transport = nullptr;
    std::unique_ptr<ZygoteSimulator> simulator;
    std::unique_ptr<Worker> worker;
  };
  bool pump();
  void poll();
  void tick();
  void await_signal();
  void stop_when_over();
  void check_coordinator(std::int64_t now);
  void exclude_pause();

  Zygote& zygote_;
  LoopOptions options_;
  boost::asio::io_context context_;
  boost::asio::steady_timer poll_timer_, tick_timer_;
  boost::asio::signal_set signals_;
  std::vector<std::unique_ptr<LocalWorker>> local_workers_;
  Coordinator* coordinator_ = nullptr;
  std::function<void()> each_second_;
  std::chrono::steady_clock::time_point begin_, last_message_, last_run_;
  std::chrono::steady_clock::duration paused_{0};
  std::int64_t last_second_ms_ = 0, last_check_ms_ = 0;
  std::int64_t dismissed_ms_ = -1;
  int parent_;
  bool abandoned_ = false;
  bool blocks_ctrl_c_ = false;  // outside of the loop, where a caller blocks it
};

/// Blocks SIGUSR1 until the loop handles it. To be called before anything that takes time, above all MPI_Init.
void block_drain_signal();
/// Unblocks SIGUSR1, for a program started from a process that blocks it.
void unblock_drain_signal();

}  // namespace manyworlds::farm
