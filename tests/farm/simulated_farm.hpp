// A farm of any size in virtual time, from event to event: the coordinator, the workers and the bytes of their messages
// are the real ones; wires, simulators and what a message costs the coordinator are figures. Same figures, same run.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "farm/coordinator/coordinator.hpp"
#include "farm/protocol/job_signature.hpp"
#include "farm/worker/worker.hpp"

namespace manyworlds::farm::synthetic {

/// Tasks and how long each runs.
struct Work final : Job {
  const std::vector<Task>& tasks() const override { return all; }
  std::string common_spec() const override { return "work"; }
  std::string spec(std::uint32_t) const override { return std::string(order_bytes, 'o'); }

  std::vector<Task> all;
  std::vector<std::int64_t> us;
  std::size_t order_bytes = 1'000;
  std::int64_t sum_us() const {
    std::int64_t sum = 0;
    for (const auto one : us) sum += one;
    return sum;
  }
  std::int64_t longest_us() const { return *std::max_element(us.begin(), us.end()); }
};

/// Tasks that were measured: rows "kind,cost,cpu_s,how" of tests/bench/task_durations_r1.csv, '#' begins a remark.
/// Those that did not end are left out.
struct MeasuredTask {
  double cost = 0;
  std::int64_t us = 0;
};
struct MeasuredTasks {
  std::vector<MeasuredTask> steps, collectives;

  static MeasuredTasks read(const std::string& path) {
    MeasuredTasks all;
    std::ifstream file(path);
    MANYWORLDS_CHECK(file.good(), "no file {}", path);
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string kind, cost, seconds;
      std::getline(fields, kind, ','), std::getline(fields, cost, ','), std::getline(fields, seconds, ',');
      if ((kind != "step" && kind != "collective") || line.ends_with(",cut")) continue;
      (kind == "step" ? all.steps : all.collectives)
          .push_back({std::stod(cost), 1 + static_cast<std::int64_t>(1e6 * std::stod(seconds))});
    }
    MANYWORLDS_CHECK(!all.steps.empty() && !all.collectives.empty(), "no tasks in {}", path);
    return all;
  }

  /// So many tasks drawn from these, `needs` collectives for each step.
  Work draw(std::size_t collective_count, std::size_t step_count, std::size_t needs, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    Work work;
    const auto add = [&](const std::vector<MeasuredTask>& from) -> Task& {
      const MeasuredTask& one = from[random() % from.size()];
      work.us.push_back(one.us);
      Task task;
      task.key.digest = {work.all.size(), seed};
      task.cost = one.cost;
      task.locality_group = static_cast<std::uint32_t>(work.all.size() / 8);
      return work.all.emplace_back(task);
    };
    for (std::size_t i = 0; i < collective_count; ++i) add(collectives);
    for (std::size_t i = 0; i < step_count; ++i) {
      Task& step = add(steps);
      for (std::size_t n = 0; n < needs; ++n)
        step.inputs.push_back(static_cast<std::uint32_t>(random() % collective_count));
      std::sort(step.inputs.begin(), step.inputs.end());
      step.inputs.erase(std::unique(step.inputs.begin(), step.inputs.end()), step.inputs.end());
    }
    return work;
  }
};

/// Of workers that cost nothing to talk to: whoever is free takes the first of what is left, in the order given.
inline std::int64_t list_schedule_us(const std::vector<std::int64_t>& us, std::size_t workers) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_at;
  for (std::size_t i = 0; i < workers; ++i) free_at.push(0);
  std::int64_t end = 0;
  for (const auto one : us) {
    const std::int64_t done = free_at.top() + one;
    free_at.pop();
    free_at.push(done);
    end = std::max(end, done);
  }
  return end;
}

struct FarmFigures {
  std::int64_t latency_ns = 30'000;      // of a message, one way
  std::int64_t coordinator_ns = 20'000;  // a message at the coordinator: taken, answered, journalled
  std::int64_t around_ns = 30'000;       // around a task at its worker: pipes there and back
  std::size_t result_bytes = 1'000;
};

class SimulatedFarm final {
 public:
  SimulatedFarm(const Work& work, int workers, FarmFigures figures)
      : work_(work), figures_(figures), schedule_(work.all) {
    for (int number = 0; number < workers; ++number) wires_.push_back(std::make_unique<Wire>(*this, number, workers));
    coordinator_ = std::make_unique<Coordinator>(schedule_, *wires_[0], work);
    for (int number = 0; number < workers; ++number) {
      Seat& seat = seats_.emplace_back();
      seat.simulator = std::make_unique<TimedSimulator>(*this, number);
      // Ranks of a real run do not begin in the same instant either.
      at(number * 1'000'000'000LL / workers, [this, number] { sit_down(number); });
    }
    at(kSecond_ns, [this] { tick_coordinator(); });
  }

  /// Until the last task is settled; false when that never happens.
  bool run() {
    while (!events_.empty() && !coordinator_->complete()) {
      const Event next = std::move(const_cast<Event&>(events_.top()));
      events_.pop();
      now_ns_ = next.ns;
      next.what();
    }
    return coordinator_->complete();
  }

  double makespan_s() const { return static_cast<double>(now_ns_) * 1e-9; }
  /// Share of the workers' time in which tasks ran.
  double efficiency() const {
    return static_cast<double>(work_.sum_us()) * 1e-6 / (makespan_s() * static_cast<double>(seats_.size()));
  }
  double coordinator_load() const { return static_cast<double>(coordinator_busy_ns_) / static_cast<double>(now_ns_); }
  std::uint64_t messages() const { return messages_; }  // to the coordinator
  std::uint64_t runs() const { return runs_; }

 private:
  static constexpr std::int64_t kSecond_ns = 1'000'000'000;

  struct Event {
    std::int64_t ns;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Event& other) const { return std::pair(ns, number) > std::pair(other.ns, other.number); }
  };
  struct Wire final : MessageTransport {
    Wire(SimulatedFarm& simulated, int number, int endpoints) : farm(simulated), self_(number), size_(endpoints) {}
    int self() const override { return self_; }
    int size() const override { return size_; }
    void send(int to, std::string message) override { farm.carry(self_, to, std::move(message)); }
    std::optional<Envelope> receive() override { return std::nullopt; }
    bool flushed() override { return true; }
    SimulatedFarm& farm;
    int self_, size_;
  };
  struct TimedSimulator final : Simulator {
    TimedSimulator(SimulatedFarm& simulated, int seat) : farm(simulated), number(seat) {}
    void build(const std::string& common_spec) override {
      farm.after(farm.figures_.around_ns, [this, signature = job_signature(common_spec)] {
        farm.worker(number).serves(signature, farm.now_ms());
      });
    }
    void run(std::uint32_t task, const std::string&, const std::vector<std::string>&) override {
      ++farm.runs_;
      const std::int64_t us = farm.work_.us[task];
      farm.after(farm.figures_.around_ns + 1'000 * us, [this, task, us] {
        farm.worker(number).computed(task, {Status::ok, std::string(farm.figures_.result_bytes, 'r'), us},
                                     farm.now_ms());
      });
    }
    SimulatedFarm& farm;
    int number;
  };
  struct Seat {
    std::unique_ptr<TimedSimulator> simulator;
    std::unique_ptr<Worker> worker;
  };

  void at(std::int64_t ns, std::function<void()> what) { events_.push({ns, ++pushed_, std::move(what)}); }
  void after(std::int64_t ns, std::function<void()> what) { at(now_ns_ + ns, std::move(what)); }
  std::int64_t now_ms() const { return now_ns_ / 1'000'000; }
  Worker& worker(int number) { return *seats_[static_cast<std::size_t>(number)].worker; }

  void sit_down(int number) {
    Seat& seat = seats_[static_cast<std::size_t>(number)];
    seat.worker = std::make_unique<Worker>(*wires_[static_cast<std::size_t>(number)], 0, *seat.simulator, now_ms());
    after(kSecond_ns, [this, number] { tick(number); });
  }
  void tick(int number) {
    worker(number).tick(now_ms());
    after(kSecond_ns, [this, number] { tick(number); });
  }
  void tick_coordinator() {
    coordinator_->tick(now_ms());
    after(kSecond_ns, [this] { tick_coordinator(); });
  }

  void carry(int from, int to, std::string bytes) {
    after(figures_.latency_ns, [this, from, to, text = std::move(bytes)] {
      const Message message = decode_message(text);
      if (!for_coordinator(message.kind)) return worker(to).receive(message, now_ms());
      // One message after the other: who comes while the coordinator is at work waits.
      ++messages_;
      coordinator_busy_ns_ += figures_.coordinator_ns;
      coordinator_free_ns_ = std::max(now_ns_, coordinator_free_ns_) + figures_.coordinator_ns;
      at(coordinator_free_ns_, [this, from, message] { coordinator_->receive(from, message, now_ms()); });
    });
  }

  const Work& work_;
  FarmFigures figures_;
  TaskQueue schedule_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::vector<Seat> seats_;
  std::unique_ptr<Coordinator> coordinator_;
  std::priority_queue<Event> events_;
  std::uint64_t pushed_ = 0, messages_ = 0, runs_ = 0;
  std::int64_t now_ns_ = 0, coordinator_free_ns_ = 0, coordinator_busy_ns_ = 0;
};

}  // namespace manyworlds::farm::synthetic
