// A whole farm in one thread and in virtual time: a coordinator, workers that simulate in no time of ours, and a
// network with faults. Hours of trouble pass in milliseconds, and the same seed is the same trouble.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <set>

#include "farm/coordinator.hpp"
#include "farm/job_signature.hpp"
#include "farm/simulating_worker.hpp"
#include "farm/transport_in_process.hpp"
#include "farm/worker.hpp"
#include "synthetic_job.hpp"

namespace manyworlds::farm::synthetic {

struct Trouble {
  Faults faults = {};
  double kill_per_s = 0;                    // chance per second that some worker vanishes; another life comes later
  std::set<std::uint32_t> crash_once = {};  // tasks whose first run kills its simulator
  std::set<std::uint32_t> crash_always = {};
  int task_ms_max = 200;
};

class VirtualFarm {
 public:
  VirtualFarm(const std::string& frozen, int parties, Trouble trouble)
      : job(frozen),
        schedule(job.tasks()),
        trouble_(trouble),
        random_(trouble.faults.seed),
        network_(parties, trouble.faults),
        coordinator(schedule, network_.party(0), frozen, job_signature(job.tasks()), quick()) {
    schedule.on_settled = [this](std::uint32_t task, const Outcome& outcome) {
      settled_before_counted &= !schedule.settled(task);
      ++times_settled[task];
      outcomes[task] = outcome;
    };
    seats_.resize(static_cast<std::size_t>(parties));
    for (int party = 0; party < parties; ++party) sit_down(party);
  }

  static CoordinatorOptions quick() {
    return {.lease_ms = 2'000, .silence_ms = 1'000, .hide_latency_us = 20'000, .drain_grace_ms = 1'000, .batch = 8};
  }

  /// Until the coordinator is finished, for at most `limit_ms` of virtual time. False when it took longer.
  bool run(std::int64_t limit_ms = 3'600'000) {
    for (const std::int64_t end = now_ms + limit_ms; now_ms < end; now_ms += 5) {
      network_.set_time(now_ms);
      step();
      if (coordinator.finished(now_ms)) return true;
    }
    return false;
  }

  void kill(int party) {
    network_.kill(party);
    seats_[static_cast<std::size_t>(party)].reset();
  }
  bool left(int party) const { return seats_[static_cast<std::size_t>(party)]->worker->left(); }
  bool abandoned(int party) const { return seats_[static_cast<std::size_t>(party)]->worker->abandoned(); }
  void step_until(std::int64_t end_ms) {
    for (; now_ms < end_ms; now_ms += 5) network_.set_time(now_ms), step();
  }
  void silence_coordinator() { coordinating_ = false; }

  SyntheticJob job;
  Schedule schedule;
  std::map<std::uint32_t, int> times_settled, runs;
  std::map<std::uint32_t, Outcome> outcomes;
  std::vector<std::uint32_t> started;  // tasks in the order in which simulators began them
  bool settled_before_counted = true;
  std::int64_t now_ms = 0;

 private:
  struct VirtualSimulator final : Simulator {
    explicit VirtualSimulator(VirtualFarm& of) : farm(of) {}
    void build(const std::string& frozen) override {
      signature = job_signature(SyntheticJob(frozen).tasks());
      built_ms = farm.now_ms + 20;
    }
    void run(std::uint32_t task, const std::vector<std::string>& given) override {
      running = task;
      inputs = given;
      due_ms = farm.now_ms + 1 +
               static_cast<std::int64_t>(farm.random_() % static_cast<unsigned>(farm.trouble_.task_ms_max));
      farm.started.push_back(task);
      ++farm.runs[task];
    }
    VirtualFarm& farm;
    std::uint64_t signature = 0;
    std::int64_t built_ms = -1, due_ms = 0;
    std::optional<std::uint32_t> running;
    std::vector<std::string> inputs;
  };
  struct Seat {
    std::unique_ptr<VirtualSimulator> simulator;
    std::unique_ptr<Worker> worker;
  };

  void sit_down(int party) {
    auto seat = std::make_unique<Seat>();
    seat->simulator = std::make_unique<VirtualSimulator>(*this);
    seat->worker =
        std::make_unique<Worker>(network_.party(party), 0, *seat->simulator, now_ms,
                                 WorkerOptions{.report_ms = 200, .silence_ms = 3'000, .first_silence_ms = 60'000});
    seats_[static_cast<std::size_t>(party)] = std::move(seat);
  }

  void step() {
    if (trouble_.kill_per_s > 0 && static_cast<double>(random_() % 1'000'000) * 1e-6 < trouble_.kill_per_s * 0.005) {
      const int party = 1 + static_cast<int>(random_() % (seats_.size() - 1));
      seats_[static_cast<std::size_t>(party)] ? kill(party) : revive(party);
    }
    for (int party = 0; party < static_cast<int>(seats_.size()); ++party) {
      auto& seat = seats_[static_cast<std::size_t>(party)];
      while (const auto envelope = network_.party(party).receive()) {
        const Message message = decode_message(envelope->message);
        if (for_coordinator(message.kind)) {
          if (coordinating_) coordinator.receive(envelope->from, message, now_ms);
        } else if (seat) {
          seat->worker->receive(message, now_ms);
        }
      }
      if (!seat) continue;
      simulate(*seat);
      seat->worker->tick(now_ms);
      if (seat->worker->left()) revive(party);
    }
    if (coordinating_ && now_ms % 100 == 0) coordinator.tick(now_ms);
  }

  /// A worker that left because it heard nothing for long comes back as another life, as a requeued rank would.
  void revive(int party) {
    if (!coordinating_ || trouble_.kill_per_s <= 0) return;
    network_.revive(party);
    sit_down(party);
  }

  void simulate(Seat& seat) {
    VirtualSimulator& simulator = *seat.simulator;
    if (simulator.built_ms >= 0 && now_ms >= simulator.built_ms) {
      simulator.built_ms = -1;
      seat.worker->serves(simulator.signature, now_ms);
    }
    if (!simulator.running || now_ms < simulator.due_ms) return;
    const std::uint32_t task = *simulator.running;
    simulator.running.reset();
    const bool crashes =
        trouble_.crash_always.contains(task) || (trouble_.crash_once.contains(task) && runs[task] == 1);
    Outcome outcome = crashes ? Outcome{Status::crash, "SIGSEGV", 0, 2} : run_guarded(job, task, simulator.inputs);
    outcome.elapsed_us = 1'000 * (now_ms - (simulator.due_ms - 1));
    seat.worker->computed(task, outcome, now_ms);
  }

  Trouble trouble_;
  std::mt19937_64 random_;
  InProcessNetwork network_;
  std::vector<std::unique_ptr<Seat>> seats_;
  bool coordinating_ = true;

 public:
  Coordinator coordinator;
};

}  // namespace manyworlds::farm::synthetic
