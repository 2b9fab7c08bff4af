// The coordinator: who computes what, as a state machine without clock, wire or disk of its own. It believes no
// message arrived until an answer shows it did; a lease that nobody renews goes back. Tasks are pure, so giving
// one out twice is harmless, and that is the whole fault model.
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

#include "farm/coordinator/schedule.hpp"
#include "farm/protocol/message.hpp"
#include "farm/protocol/transport.hpp"

namespace manyworlds::farm {

/// How one worker is doing, for people.
struct WorkerLoad {
  int number = 0;
  bool alive = false;
  std::uint64_t done = 0;  // tasks it ran to their end
  double busy_s = 0;       // in them
  std::size_t held = 0;    // tasks it runs or keeps queued
};

struct CoordinatorOptions {
  std::int64_t lease_ms = 30'000;  // a task nobody has reported for so long is given to another
  std::int64_t silence_ms =
      6'000;  // a worker silent for so long is lost, until it speaks again: it reports every second
  std::int64_t hide_latency_us = 20'000;  // work to keep queued at a worker beyond the task it runs
  std::int64_t drain_grace_ms = 10'000;   // how long draining waits for tasks that are running
  std::size_t job_bytes = 256 << 20;      // of jobs on their way to workers at a time; one always may be
  std::size_t batch = 256;                // tasks in one message at most, and half of what a worker is given at most
};

class Coordinator {
 public:
  /// All but the options must outlive this. `schedule` is of the tasks of `job`.
  Coordinator(Schedule& schedule, Transport& transport, const Job& job, CoordinatorOptions options = {});

  void receive(int from, const Message& message, std::int64_t now_ms);
  /// Once a second or so: leases run out, lost workers are noticed.
  void tick(std::int64_t now_ms);
  /// Nothing more is handed out; what runs may finish within the grace.
  void drain(std::int64_t now_ms);
  /// Tells every worker that the run is over.
  void dismiss();

  bool draining() const { return draining_; }
  /// Complete, or drained as far as it goes, or no worker can serve the job.
  bool finished(std::int64_t now_ms) const;
  bool complete() const { return schedule_.complete(); }
  struct Unserved {
    std::string reason;
    bool out_of_memory = false;  // which is for the user to mend
  };
  /// Why no worker can serve this job; nothing while one can.
  std::optional<Unserved> unserved(std::int64_t now_ms) const;

  std::size_t workers() const { return workers_.size(); }
  std::vector<WorkerLoad> loads(std::int64_t now_ms) const;

 private:
  struct Lease {
    std::int64_t until_ms = 0;
    bool running = false;  // the worker said that it runs this one
  };
  struct Worker {
    int number = 0;
    bool serves = false;         // it runs our tasks
    std::string unfit;           // why it never will
    bool out_of_memory = false;  // that is why
    std::int64_t heard_ms = 0;
    std::uint64_t done = 0;
    std::int64_t busy_us = 0;
    std::map<std::uint32_t, Lease> leases;
    std::deque<std::uint32_t> order;          // in which it was given them; some are gone
    double cost_held = 0;                     // of all leases
    std::optional<std::uint32_t> family;      // of the task it was given last
    std::unordered_set<std::uint32_t> knows;  // results it computed or was sent
    std::set<std::uint64_t> crash_numbers;    // of the crashes it reported: a doubled message is one crash
  };

  void on_hello(Worker& worker, const Message& message);
  void on_report(Worker& worker, const Message& message, std::int64_t now_ms);
  void on_result(Worker& worker, const Message& message, std::int64_t now_ms);
  void on_lack(Worker& worker, const Message& message);
  void accept(const Worker& from, std::uint32_t task, const Outcome& outcome, std::int64_t now_ms);
  void died_in(Worker& worker, std::uint32_t task, const Outcome& outcome, std::int64_t now_ms);
  void refill(Worker& worker, std::int64_t now_ms);
  void refill_idle(std::int64_t now_ms);
  std::optional<std::uint32_t> take_for(const Worker& worker);
  void remember_family(Worker& worker, std::uint32_t family);
  void assign(Worker& worker, const std::vector<std::uint32_t>& tasks, std::int64_t now_ms);
  void lease(Worker& worker, std::uint32_t task, std::int64_t now_ms, bool running);
  void release(Worker& worker, std::uint32_t task);
  double queued_us(Worker& worker) const;
  static std::uint32_t first_of(Worker& worker);
  bool alive(const Worker& worker, std::int64_t now_ms) const { return now_ms - worker.heard_ms < options_.silence_ms; }
  double expected_us(std::uint32_t task) const;
  std::vector<std::uint32_t> to_steal();
  bool may_work(const Worker& worker) const { return worker.serves && worker.unfit.empty(); }
  void send(const Worker& to, const Message& message) { transport_.send(to.number, encode(message)); }

  Schedule& schedule_;
  Transport& transport_;
  const Job& job_;
  std::string common_;
  std::uint64_t signature_;
  CoordinatorOptions options_;
  std::map<int, Worker> workers_;
  // A farm of 10,000 sends thousands of messages a second: none of them may cost a look at all workers or leases.
  std::set<int> being_told_;  // were sent the job and have not said that they have it
  std::set<int> idle_;        // could work and have no lease
  std::unordered_map<std::uint32_t, std::vector<int>> holders_;    // who has a lease on a task
  std::priority_queue<std::pair<double, std::uint32_t>> waiting_;  // behind another at its worker, by cost; or once did
  std::map<std::uint32_t, int> deaths_;                            // simulators that died in a task
  std::unordered_map<std::uint32_t, int> at_work_on_;              // workers by the family they were given last
  double cost_seen_ = 0, elapsed_seen_us_ = 0;                     // what cost means in time, learnt from results
  std::size_t results_seen_ = 0;
  std::int64_t first_heard_ms_ = 0;
  bool draining_ = false;
  std::int64_t drain_until_ms_ = 0;
};

}  // namespace manyworlds::farm
