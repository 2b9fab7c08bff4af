// A whole farm in one thread and in virtual time: a coordinator, workers that simulate in no time of ours, and a
// network with faults. Hours of trouble pass in milliseconds, and the same seed is the same trouble.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <set>

#include "farm/coordinator/coordinator.hpp"
#include "farm/protocol/in_process_transport.hpp"
#include "farm/protocol/job_signature.hpp"
#include "farm/worker/simulating_worker.hpp"
#include "farm/worker/worker.hpp"
#include "tests/farm/synthetic_job.hpp"

namespace manyworlds::farm::synthetic {

struct Trouble {
  MessageFaults faults = {};
  double kill_per_s = 0;  // chance per second that some worker vanishes; another life comes later
  double cut_per_s = 0;   // that nobody hears some worker any more, nor it them, for up to five seconds
  double restart_per_s =
      0;  // that the coordinating process vanishes; it comes back with its journal within five seconds
  std::set<std::uint32_t> crash_once = {};  // tasks whose first run kills its simulator
  std::set<std::uint32_t> crash_always = {};
  int task_ms_max = 200;
};

class VirtualFarm {
 public:
  VirtualFarm(const std::string& serialized, int endpoints, Trouble trouble)
      : job(serialized),
        trouble_(trouble),
        random_(trouble.faults.seed),
        network_(endpoints, trouble.faults),
        mended_ms_(static_cast<std::size_t>(endpoints), -1) {
    begin_coordinating();
    seats_.resize(static_cast<std::size_t>(endpoints));
    for (int endpoint = 0; endpoint < endpoints; ++endpoint) sit_down(endpoint);
  }

  static CoordinatorOptions quick() {
    return {.lease_ms = 2'000, .silence_ms = 1'000, .hide_latency_us = 20'000, .drain_grace_ms = 1'000, .batch = 8};
  }

  /// Until the coordinator is finished, for at most `limit_ms` of virtual time. False when it took longer.
  bool run(std::int64_t limit_ms = 3'600'000) {
    for (const std::int64_t end = now_ms + limit_ms; now_ms < end; now_ms += 5) {
      network_.set_time(now_ms);
      step();
      if (coordinating_ && coordinator().finished(now_ms)) return true;
    }
    return false;
  }

  void kill(int endpoint) {
    network_.kill(endpoint);
    seats_[static_cast<std::size_t>(endpoint)].reset();
  }
  bool left(int endpoint) const { return seats_[static_cast<std::size_t>(endpoint)]->worker->left(); }
  bool abandoned(int endpoint) const { return seats_[static_cast<std::size_t>(endpoint)]->worker->abandoned(); }
  void step_until(std::int64_t end_ms) {
    for (; now_ms < end_ms; now_ms += 5) network_.set_time(now_ms), step();
  }
  void silence_coordinator() { coordinating_ = false; }

  /// Returns the first endpoint whose simulator runs a task, or -1.
  int busy_endpoint() const {
    for (std::size_t endpoint = 0; endpoint < seats_.size(); ++endpoint)
      if (seats_[endpoint] && seats_[endpoint]->simulator->running) return static_cast<int>(endpoint);
    return -1;
  }

  TaskQueue& schedule() { return *schedule_; }
  Coordinator& coordinator() { return *coordinator_; }

  SyntheticJob job;
  std::map<std::uint32_t, int> times_settled, runs;
  std::map<std::uint32_t, Outcome> outcomes;  // the journal: it outlives coordinators
  int restarts = 0, cuts = 0;
  int answers = 0, mixed_up = 0;       // that questions of tasks have got, right and wrong
  std::vector<std::uint32_t> started;  // tasks in the order in which simulators began them
  bool settled_before_counted = true;
  std::int64_t now_ms = 0;

 private:
  struct VirtualSimulator final : Simulator {
    explicit VirtualSimulator(VirtualFarm& simulated) : farm(simulated) {}
    void build(const std::string& common_spec) override {
      runner.emplace(common_spec);
      signature = job_signature(common_spec);
      built_ms = farm.now_ms + 20;
    }
    void run(std::uint32_t task, const std::string& given_order, const std::vector<std::string>& given) override {
      running = task;
      spec = given_order;
      inputs = given;
      due_ms = farm.now_ms + 1 +
               static_cast<std::int64_t>(farm.random_() % static_cast<unsigned>(farm.trouble_.task_ms_max));
      farm.started.push_back(task);
      ++farm.runs[task];
    }
    void help(std::uint64_t number, const std::string& question) override {
      helping = {number, question};
      help_due_ms = farm.now_ms + 5 + static_cast<std::int64_t>(number % 4) * 5;
    }
    void answer(std::uint64_t number, const std::string& answer) override {
      const auto found = questions.find(number);
      if (found == questions.end()) return;  // of an earlier process
      if (!answer.empty()) ++(answer == "re: " + found->second ? farm.answers : farm.mixed_up);
      questions.erase(found);
    }
    void allow_questions(std::size_t count) override { places = count; }
    VirtualFarm& farm;
    std::optional<SyntheticRunner> runner;
    std::uint64_t signature = 0;
    std::int64_t built_ms = -1, due_ms = 0;
    std::optional<std::uint32_t> running;
    std::string spec;
    std::vector<std::string> inputs;
    std::optional<std::pair<std::uint64_t, std::string>> helping;
    std::int64_t help_due_ms = 0;
    std::map<std::uint64_t, std::string> questions;
    std::uint64_t asked = 0;
    std::size_t places = 0;
  };
  struct Seat {
    std::unique_ptr<VirtualSimulator> simulator;
    std::unique_ptr<Worker> worker;
  };

  /// As a process does that finds a journal, or none.
  void begin_coordinating() {
    coordinator_.reset();
    schedule_.emplace(job.tasks());
    for (const auto& [task, outcome] : outcomes) schedule_->settle(task, outcome);
    schedule_->on_settled = [this](std::uint32_t task, const Outcome& outcome) {
      settled_before_counted &= !schedule_->settled(task);
      ++times_settled[task];
      outcomes[task] = outcome;
    };
    coordinator_.emplace(*schedule_, network_.endpoint(0), job, quick());
    coordinating_ = true;
  }

  /// A chance in this step of 5 ms.
  bool strikes(double per_s) { return per_s > 0 && static_cast<double>(random_() % 1'000'000) * 1e-6 < per_s * 0.005; }

  void strike() {
    const auto somebody = [this] { return 1 + static_cast<int>(random_() % (seats_.size() - 1)); };
    if (strikes(trouble_.kill_per_s)) {
      const int endpoint = somebody();
      seats_[static_cast<std::size_t>(endpoint)] ? kill(endpoint) : revive(endpoint);
    }
    if (strikes(trouble_.cut_per_s)) {
      const int endpoint = somebody();
      network_.disconnect(endpoint);
      mended_ms_[static_cast<std::size_t>(endpoint)] = now_ms + static_cast<std::int64_t>(random_() % 5'000);
      ++cuts;
    }
    for (int endpoint = 0; endpoint < static_cast<int>(seats_.size()); ++endpoint)
      if (auto& at_ms = mended_ms_[static_cast<std::size_t>(endpoint)]; at_ms >= 0 && now_ms >= at_ms) {
        network_.reconnect(endpoint);
        at_ms = -1;
      }
    if (strikes(trouble_.restart_per_s) && coordinating_) {
      coordinating_ = false;
      kill(0);
      back_ms_ = now_ms + static_cast<std::int64_t>(random_() % 5'000);
    } else if (back_ms_ >= 0 && now_ms >= back_ms_) {
      back_ms_ = -1;
      ++restarts;
      network_.revive(0);
      begin_coordinating();
      sit_down(0);
    }
  }

  void sit_down(int endpoint) {
    auto seat = std::make_unique<Seat>();
    seat->simulator = std::make_unique<VirtualSimulator>(*this);
    seat->worker =
        std::make_unique<Worker>(network_.endpoint(endpoint), 0, *seat->simulator, now_ms,
                                 WorkerOptions{.report_ms = 200, .silence_ms = 3'000, .first_silence_ms = 60'000});
    seats_[static_cast<std::size_t>(endpoint)] = std::move(seat);
  }

  void step() {
    strike();
    for (int endpoint = 0; endpoint < static_cast<int>(seats_.size()); ++endpoint) {
      auto& seat = seats_[static_cast<std::size_t>(endpoint)];
      while (const auto envelope = network_.endpoint(endpoint).receive()) {
        const Message message = decode_message(envelope->message);
        if (for_another_worker(message.kind)) {
          if (seat) seat->worker->hear(envelope->from, message);
        } else if (for_coordinator(message.kind)) {
          if (coordinating_) coordinator_->receive(envelope->from, message, now_ms);
        } else if (seat) {
          seat->worker->receive(message, now_ms);
        }
      }
      if (!seat) continue;
      simulate(*seat);
      seat->worker->tick(now_ms);
      if (seat->worker->left()) revive(endpoint);
    }
    if (coordinating_ && now_ms % 100 == 0) coordinator_->tick(now_ms);
  }

  /// A worker that left because it heard nothing for long comes back as another life, as a requeued rank would.
  void revive(int endpoint) {
    if (!coordinating_ || trouble_.kill_per_s + trouble_.cut_per_s + trouble_.restart_per_s <= 0) return;
    network_.revive(endpoint);
    sit_down(endpoint);
  }

  void simulate(Seat& seat) {
    VirtualSimulator& simulator = *seat.simulator;
    if (simulator.built_ms >= 0 && now_ms >= simulator.built_ms) {
      simulator.built_ms = -1;
      seat.worker->serves(simulator.signature, now_ms);
    }
    if (simulator.helping && now_ms >= simulator.help_due_ms) {
      const auto [number, question] = *std::exchange(simulator.helping, std::nullopt);
      seat.worker->helped(number, "re: " + question, 1'000);
    }
    if (!simulator.running) return;
    while (simulator.questions.size() < simulator.places) {
      std::string question = std::to_string(++simulator.asked) + " of " + std::to_string(*simulator.running);
      simulator.questions.emplace(simulator.asked, question);
      seat.worker->asks(simulator.asked, question, now_ms);
    }
    if (now_ms < simulator.due_ms) return;
    const std::uint32_t task = *simulator.running;
    simulator.running.reset();
    const bool crashes =
        trouble_.crash_always.contains(task) || (trouble_.crash_once.contains(task) && runs[task] == 1);
    Outcome outcome = crashes ? Outcome{Status::crash, "SIGSEGV", 0, 2}
                              : run_guarded(*simulator.runner, simulator.spec, simulator.inputs);
    outcome.elapsed_us = 1'000 * (now_ms - (simulator.due_ms - 1));
    seat.worker->computed(task, outcome, now_ms);
  }

  Trouble trouble_;
  std::mt19937_64 random_;
  InProcessNetwork network_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::vector<std::int64_t> mended_ms_;  // by party: when it is heard again
  std::int64_t back_ms_ = -1;            // when another coordinator comes
  bool coordinating_ = true;
  std::optional<TaskQueue> schedule_;
  std::optional<Coordinator> coordinator_;
};

}  // namespace manyworlds::farm::synthetic
