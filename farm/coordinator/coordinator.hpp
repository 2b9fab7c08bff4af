// The coordinator assigns tasks to workers. It is a state machine without clock, network or disk of its own. It assumes
// that a message arrived only once an answer shows it, and a lease that is not renewed expires. Tasks are pure, so
// assigning one twice is harmless: that is the whole fault model.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "farm/coordinator/lending.hpp"
#include "farm/coordinator/task_queue.hpp"
#include "farm/protocol/message.hpp"
#include "farm/protocol/message_transport.hpp"

namespace manyworlds::farm {

/// The load of one worker, for display.
struct WorkerLoad {
  int number = 0;
  bool alive = false;
  std::uint64_t done = 0;  // tasks that it ran to their end
  double busy_s = 0;       // time spent in these tasks and in help
  std::size_t held = 0;    // tasks that it runs or has queued
  Help help = {};          // what it did for others, and they for it
};

struct CoordinatorOptions {
  std::int64_t lease_ms = 30'000;   // a task not reported for this long is assigned to another worker
  std::int64_t silence_ms = 6'000;  // a worker silent this long is lost until heard again; it reports every second
  std::int64_t hide_latency_us = 20'000;  // work kept queued at a worker behind the running task
  std::int64_t drain_grace_ms = 10'000;   // how long draining waits for running tasks
  std::size_t job_bytes = 256 << 20;      // total size of the job payloads in flight; one is always allowed
  std::size_t batch = 256;                // maximum tasks per message, and half of the maximum that a worker holds
};

class Coordinator {
 public:
  /// All references must outlive this object. `queue` must contain the tasks of `job`.
  Coordinator(TaskQueue& queue, MessageTransport& transport, const Job& job, CoordinatorOptions options = {});

  void receive(int from, const Message& message, std::int64_t now_ms);
  /// Expires leases and detects lost workers. To be called about once a second.
  void tick(std::int64_t now_ms);
  /// Assigns nothing more; running tasks may finish within `drain_grace_ms`.
  void drain(std::int64_t now_ms);
  /// Tells every worker that the run is over.
  void dismiss();

  bool draining() const { return draining_; }
  /// Returns true if the run is complete, if it has drained as far as possible, or if no worker can serve the job.
  bool finished(std::int64_t now_ms) const;
  bool complete() const { return queue_.complete(); }
  struct Unserved {
    std::string reason;
    bool out_of_memory = false;  // a cause that the user can remove
  };
  /// Returns why no worker can serve this job; nullopt while one can.
  std::optional<Unserved> unserved(std::int64_t now_ms) const;

  std::size_t workers() const { return workers_.size(); }
  std::vector<WorkerLoad> loads(std::int64_t now_ms) const;

 private:
  struct Lease {
    std::int64_t until_ms = 0;
    bool running = false;  // the worker reported that it runs this task
  };
  struct Worker {
    int number = 0;
    bool serves = false;              // it is ready to run tasks of this job
    std::string incompatible_reason;  // why it cannot serve the job; "" if it can
    bool out_of_memory = false;       // whether the reason is a lack of memory
    std::int64_t heard_ms = 0;
    Help help;
    std::uint64_t done = 0;
    std::int64_t busy_us = 0;
    std::map<std::uint32_t, Lease> leases;
    std::deque<std::uint32_t> lease_order;        // tasks in the order of their leases, including ones already released
    double cost_held = 0;                         // sum over all leases
    std::optional<std::uint32_t> locality_group;  // locality group of the task assigned last
    std::unordered_set<std::uint32_t> known_results;  // results that it computed or was sent
    std::set<std::uint64_t> crash_numbers;  // result numbers of reported crashes; a duplicated message counts once
  };

  void handle(Worker& worker, const Message& message, std::int64_t now_ms);
  void lend(std::int64_t now_ms);
  void on_hello(Worker& worker, const Message& message);
  void on_report(Worker& worker, const Message& message, std::int64_t now_ms);
  void on_result(Worker& worker, const Message& message, std::int64_t now_ms);
  void on_missing_inputs(Worker& worker, const Message& message);
  void accept(const Worker& from, std::uint32_t task, const Outcome& outcome, std::int64_t now_ms);
  void on_death(Worker& worker, std::uint32_t task, const Outcome& outcome, std::int64_t now_ms);
  void refill(Worker& worker, std::int64_t now_ms);
  void refill_idle(std::int64_t now_ms);
  std::optional<std::uint32_t> take_task_for(const Worker& worker);
  void set_locality_group(Worker& worker, std::uint32_t locality_group);
  void assign(Worker& worker, const std::vector<std::uint32_t>& tasks, std::int64_t now_ms);
  void lease(Worker& worker, std::uint32_t task, std::int64_t now_ms, bool running);
  void release(Worker& worker, std::uint32_t task);
  double queued_us(Worker& worker) const;
  static std::uint32_t presumed_running(Worker& worker);
  bool alive(const Worker& worker, std::int64_t now_ms) const { return now_ms - worker.heard_ms < options_.silence_ms; }
  double expected_us(std::uint32_t task) const;
  std::vector<std::uint32_t> find_stealable();
  bool may_work(const Worker& worker) const { return worker.serves && worker.incompatible_reason.empty(); }
  void send(const Worker& to, const Message& message) { transport_.send(to.number, encode(message)); }

  TaskQueue& queue_;
  MessageTransport& transport_;
  const Job& job_;
  std::string common_spec_;
  std::uint64_t signature_;
  CoordinatorOptions options_;
  std::map<int, Worker> workers_;
  // A farm of 10,000 workers sends thousands of messages a second, so no message may cost a scan of all workers or
  // leases.
  std::set<int> job_sent_;  // workers that were sent the job and have not confirmed it
  std::set<int> idle_;      // workers that could work and have no lease
  std::set<int> touched_;   // workers whose leases may have changed since lend()
  Lending lending_;
  std::unordered_map<std::uint32_t, std::vector<int>> holders_;      // workers that hold a lease, by task
  std::priority_queue<std::pair<double, std::uint32_t>> stealable_;  // candidates for stealing, by cost; may be stale
  std::map<std::uint32_t, int> death_counts_;                        // simulators that died, by task
  std::unordered_map<std::uint32_t, int> workers_in_group_;          // workers by the locality group of their last task
  double settled_cost_ = 0, settled_elapsed_us_ = 0;                 // calibrate cost against time
  std::size_t settled_results_ = 0;
  std::int64_t first_heard_ms_ = 0;
  bool draining_ = false;
  std::int64_t drain_until_ms_ = 0;
};

}  // namespace manyworlds::farm
