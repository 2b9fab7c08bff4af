// The state of every task of a job: waiting for inputs, ready, assigned or settled. Ready tasks are ordered by the
// length of the critical path that begins with them, longest first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "farm/coordinator/selection.hpp"
#include "farm/protocol/job.hpp"
#include "farm/protocol/outcome.hpp"

namespace manyworlds::farm {

class TaskQueue {
 public:
  /// `tasks` and `selection` must outlive this object. Every input must have a smaller number than the task that needs
  /// it. Without `selection` every task is computed.
  explicit TaskQueue(const std::vector<Task>& tasks, Selection* selection = nullptr);

  /// Called for each settled task before it is counted; the place to write the journal.
  std::function<void(std::uint32_t task, const Outcome&)> on_settled;
  /// Called for each task that the selection opens; the place to look into the store. A task whose outcome it returns
  /// settles instead.
  std::function<std::optional<Outcome>(std::uint32_t task)> find_known;

  /// Records the first outcome of a task; returns false and does nothing for a later one. If the task failed, all tasks
  /// that depend on its result fail too.
  bool settle(std::uint32_t task, Outcome outcome);

  /// Assigns the ready task with the longest critical path; returns nullopt if none is ready.
  std::optional<std::uint32_t> take();
  /// As take(), but assigns the task with the lowest `affinity_cost` (0 is the best) among the first few whose critical
  /// path is at least half as long as the longest.
  std::optional<std::uint32_t> take(const std::function<int(const Task&)>& affinity_cost);
  /// Assigns this task if it is ready.
  bool take(std::uint32_t task);
  /// Makes an assigned task that produced no outcome ready again.
  void requeue(std::uint32_t task);

  /// Returns whether the selection knew the outcome of the task.
  bool known_to_selection(std::uint32_t task) const { return known_.at(task); }
  /// Returns whether the selection has neither opened the task nor left it out.
  bool held(std::uint32_t task) const { return held_.at(task); }
  bool settled(std::uint32_t task) const { return state_.at(task) == State::settled; }
  const Outcome& outcome(std::uint32_t task) const { return outcomes_.at(task); }
  const Task& task(std::uint32_t number) const { return tasks_.at(number); }
  std::size_t total() const { return tasks_.size(); }
  std::size_t done() const { return done_; }  // settled tasks, including failed ones
  std::size_t failed() const { return failed_; }
  std::size_t ready() const { return ready_.size(); }
  double remaining_cost() const { return remaining_cost_; }
  bool complete() const { return done_ == tasks_.size(); }

 private:
  enum class State : std::uint8_t { waiting, ready, assigned, settled };
  void satisfy(std::uint32_t task);
  void apply(Selection::Decision decision);
  struct LongestPathFirst {
    const std::vector<double>* critical_paths;
    bool operator()(std::uint32_t a, std::uint32_t b) const {
      const double path_a = (*critical_paths)[a], path_b = (*critical_paths)[b];
      return path_a != path_b ? path_a > path_b : a < b;
    }
  };
  void settle_one(std::uint32_t task, Outcome outcome);
  void settle_with_dependents(std::uint32_t task, Outcome outcome);
  std::uint32_t assign(std::set<std::uint32_t, LongestPathFirst>::iterator ready);

  const std::vector<Task>& tasks_;
  Selection* selection_;
  std::vector<State> state_;
  std::vector<bool> held_, known_;  // by and to the selection
  std::vector<Outcome> outcomes_;
  std::vector<std::uint32_t> missing_;  // number of inputs not settled yet, and 1 if the selection holds the task
  std::vector<std::vector<std::uint32_t>> dependents_;
  std::vector<double> critical_paths_;  // cost of a task plus its costliest chain of dependents
  std::set<std::uint32_t, LongestPathFirst> ready_;
  std::size_t done_ = 0, failed_ = 0;
  double remaining_cost_ = 0;
};

}  // namespace manyworlds::farm
