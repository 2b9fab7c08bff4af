// The event loop of one process: its workers and, in one of them, the coordinator; moved by messages, timers,
// signals and the pipes of simulators. Nothing in it blocks and nothing in it simulates.
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
#include "farm/worker/simulator_zygote.hpp"
#include "farm/worker/worker.hpp"

namespace manyworlds::farm {

struct LoopOptions {
  WorkerOptions worker;
  bool watch_parent = false;  // leave when the process that started us is gone (mpirun of a rank)
  bool drain_on_ctrl_c = false;
  TaskLimits limits = {};
  std::optional<std::chrono::milliseconds> drain_after = {};  // of the coordinating process
  std::function<bool()> coordinated = {};  // of a follower: false once nobody can be coordinating any more
};

class RankLoop {
 public:
  RankLoop(Zygote& zygote, LoopOptions options);
  ~RankLoop();

  /// A worker at `transport`, which must outlive the loop.
  void add_worker(Transport& transport);
  /// This process coordinates; the transport is the one of its first worker. `each_second` also runs at the end.
  void coordinate(Coordinator& coordinator, std::function<void()> each_second);
  /// Until the run is over here. Draining is asked for by SIGUSR1 or SIGTERM to the coordinating process.
  void run();

  /// The time for which this process has run its loop. What it was stopped for, or was busy with one thing, does not
  /// count: meanwhile it heard nobody, and that is no silence of theirs.
  std::int64_t now_ms() const;
  /// The run ended here without a word of the coordinator, or because whoever started us is gone.
  bool abandoned() const { return abandoned_; }

 private:
  struct Seat {
    Transport* transport = nullptr;
    std::unique_ptr<ZygoteSimulator> simulator;
    std::unique_ptr<Worker> worker;
  };
  bool pump();
  void poll();
  void tick();
  void await_signal();
  void stop_when_over();
  void look_for_coordinator(std::int64_t now);
  void leave_out_pause();

  Zygote& zygote_;
  LoopOptions options_;
  boost::asio::io_context context_;
  boost::asio::steady_timer poll_timer_, tick_timer_;
  boost::asio::signal_set signals_;
  std::vector<std::unique_ptr<Seat>> seats_;
  Coordinator* coordinator_ = nullptr;
  std::function<void()> each_second_;
  std::chrono::steady_clock::time_point begin_, busy_, ran_;
  std::chrono::steady_clock::duration paused_{0};
  std::int64_t last_second_ms_ = 0, last_look_ms_ = 0;
  std::int64_t dismissed_ms_ = -1;
  int parent_;
  bool abandoned_ = false;
};

/// SIGUSR1 waits until the loop takes it: to be called before anything that takes time, MPI_Init first of all.
void hold_drain_signal();
/// For a program started from a process that holds it.
void release_drain_signal();

}  // namespace manyworlds::farm
