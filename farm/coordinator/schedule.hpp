// Where every task of a job stands: waiting for inputs, ready, handed out, settled. Among the ready the one goes first
// with which the longest way to the end begins.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "farm/protocol/job.hpp"
#include "farm/protocol/outcome.hpp"

namespace manyworlds::farm {

class Schedule {
 public:
  /// `tasks` must outlive this. Every input must be a smaller number than the task that needs it.
  explicit Schedule(const std::vector<Task>& tasks);

  /// Called for each settled task, before it counts: journal it here.
  std::function<void(std::uint32_t task, const Outcome&)> on_settled;

  /// First outcome of a task wins: false, and nothing happens, for a later one. When the task failed, all that
  /// need its result fail with it.
  bool settle(std::uint32_t task, Outcome outcome);

  /// The ready task with the longest way to the end, now handed out; nothing when none is ready.
  std::optional<std::uint32_t> take();
  /// The same, but of the first few whose way is at least half as long the one that is least strange to who takes it:
  /// `strangeness` is 0 for what could not fit better.
  std::optional<std::uint32_t> take(const std::function<int(const Task&)>& strangeness);
  /// Hands out this very task, when it is ready.
  bool take(std::uint32_t task);
  /// A task that was handed out and came to nothing is ready again.
  void give_back(std::uint32_t task);

  bool settled(std::uint32_t task) const { return state_.at(task) == State::settled; }
  const Outcome& outcome(std::uint32_t task) const { return outcomes_.at(task); }
  const Task& task(std::uint32_t number) const { return tasks_.at(number); }
  std::size_t total() const { return tasks_.size(); }
  std::size_t done() const { return done_; }  // settled, failed ones included
  std::size_t failed() const { return failed_; }
  std::size_t ready() const { return ready_.size(); }
  double cost_left() const { return cost_left_; }
  bool complete() const { return done_ == tasks_.size(); }

 private:
  enum class State : std::uint8_t { waiting, ready, out, settled };
  struct Longest {
    const std::vector<double>* ways;
    bool operator()(std::uint32_t a, std::uint32_t b) const {
      const double way_a = (*ways)[a], way_b = (*ways)[b];
      return way_a != way_b ? way_a > way_b : a < b;
    }
  };
  void settle_one(std::uint32_t task, Outcome outcome);
  std::uint32_t hand_out(std::set<std::uint32_t, Longest>::iterator ready);

  const std::vector<Task>& tasks_;
  std::vector<State> state_;
  std::vector<Outcome> outcomes_;
  std::vector<std::uint32_t> missing_;  // inputs not settled yet
  std::vector<std::vector<std::uint32_t>> dependents_;
  std::vector<double> ways_;  // cost of a task and of the costliest chain of tasks that wait for it
  std::set<std::uint32_t, Longest> ready_;
  std::size_t done_ = 0, failed_ = 0;
  double cost_left_ = 0;
};

}  // namespace manyworlds::farm
