#include "farm/coordinator/task_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::farm {

namespace {
constexpr int kMaxCandidates = 64;
}  // namespace

TaskQueue::TaskQueue(const std::vector<Task>& tasks, Selection* selection)
    : tasks_(tasks),
      selection_(selection),
      state_(tasks.size(), State::waiting),
      held_(tasks.size()),
      known_(tasks.size()),
      outcomes_(tasks.size()),
      missing_(tasks.size()),
      dependents_(tasks.size()),
      critical_paths_(tasks.size()),
      ready_(LongestPathFirst{&critical_paths_}) {
  for (std::uint32_t number = 0; number < tasks.size(); ++number) {
    const Task& task = tasks[number];
    MANYWORLDS_CHECK(std::isfinite(task.cost) && task.cost >= 0, "task {} costs {}", number, task.cost);
    for (const auto input : task.inputs) {
      MANYWORLDS_CHECK(input < number, "task {} needs task {}, which comes after it", number, input);
      dependents_[input].push_back(number);
    }
    missing_[number] = static_cast<std::uint32_t>(task.inputs.size());
    if (selection_ != nullptr && selection_->holds(number)) ++missing_[number], held_[number] = true;
    remaining_cost_ += task.cost;
  }
  // A short task that long ones depend on must run early, so tasks are ordered by critical path and not by their own
  // cost.
  for (auto number = static_cast<std::uint32_t>(tasks.size()); number-- > 0;) {
    for (const auto dependent : dependents_[number])
      critical_paths_[number] = std::max(critical_paths_[number], critical_paths_[dependent]);
    critical_paths_[number] += tasks[number].cost;
  }
  for (std::uint32_t number = 0; number < tasks.size(); ++number)
    if (missing_[number] == 0) state_[number] = State::ready, ready_.insert(number);
  if (selection_ != nullptr) apply(selection_->begin());
}

/// What is known of a task that a decision opens decides further.
void TaskQueue::apply(Selection::Decision decision) {
  std::deque<std::pair<std::uint32_t, Outcome>> known;
  const auto take_up = [&](Selection::Decision next) {
    for (const std::uint32_t opened : next.open) {
      held_[opened] = false;
      if (settled(opened)) continue;
      auto found = find_known ? find_known(opened) : std::nullopt;
      found ? void(known.emplace_back(opened, std::move(*found))) : satisfy(opened);
    }
    for (const std::uint32_t left : next.leave_out) {
      held_[left] = false;
      if (!settled(left)) settle_one(left, {Status::left_out, "", 0});
    }
    for (auto& one : next.known) known_[one.first] = !settled(one.first), known.push_back(std::move(one));
  };
  for (take_up(std::move(decision)); !known.empty();) {
    auto [task, outcome] = std::move(known.front());
    known.pop_front();
    held_[task] = false;
    if (settled(task)) continue;
    settle_with_dependents(task, std::move(outcome));
    take_up(selection_->settled(task, outcomes_[task]));
  }
}

/// One thing less is missing for a task that is not settled.
void TaskQueue::satisfy(std::uint32_t task) {
  if (--missing_[task] > 0) return;
  state_[task] = State::ready;
  ready_.insert(task);
}

void TaskQueue::settle_one(std::uint32_t task, Outcome outcome) {
  if (on_settled) on_settled(task, outcome);
  if (state_[task] == State::ready) ready_.erase(task);
  state_[task] = State::settled;
  ++done_;
  failed_ += outcome.is_failure() ? 1 : 0;
  remaining_cost_ -= tasks_[task].cost;
  outcomes_[task] = std::move(outcome);
}

bool TaskQueue::settle(std::uint32_t task, Outcome outcome) {
  if (settled(task)) return false;
  settle_with_dependents(task, std::move(outcome));
  if (selection_ != nullptr) apply(selection_->settled(task, outcomes_[task]));
  return true;
}

void TaskQueue::settle_with_dependents(std::uint32_t task, Outcome outcome) {
  settle_one(task, std::move(outcome));
  std::vector<std::uint32_t> settled_now{task};
  while (!settled_now.empty()) {
    const std::uint32_t source = settled_now.back();
    settled_now.pop_back();
    for (const auto dependent : dependents_[source]) {
      if (settled(dependent)) continue;
      if (!outcomes_[source].ok()) {
        const std::string reason = outcomes_[source].status == Status::input
                                       ? outcomes_[source].bytes
                                       : fmt::format("its input {} failed ({}): {}", tasks_[source].key.hex(),
                                                     name_of(outcomes_[source].status), outcomes_[source].bytes);
        settle_one(dependent, {Status::input, reason, 0});
        settled_now.push_back(dependent);
      } else {
        satisfy(dependent);
      }
    }
  }
}

std::optional<std::uint32_t> TaskQueue::take() {
  if (ready_.empty()) return std::nullopt;
  return assign(ready_.begin());
}

std::optional<std::uint32_t> TaskQueue::take(const std::function<int(const Task&)>& affinity_cost) {
  if (ready_.empty()) return std::nullopt;
  const double min_path = critical_paths_[*ready_.begin()] / 2;
  auto best = ready_.begin();
  int lowest_cost = affinity_cost(tasks_[*best]);
  auto next = std::next(best);
  for (int candidates = 1;
       candidates < kMaxCandidates && lowest_cost > 0 && next != ready_.end() && critical_paths_[*next] >= min_path;
       ++candidates, ++next)
    if (const int affinity = affinity_cost(tasks_[*next]); affinity < lowest_cost) best = next, lowest_cost = affinity;
  return assign(best);
}

std::uint32_t TaskQueue::assign(std::set<std::uint32_t, LongestPathFirst>::iterator ready) {
  const std::uint32_t task = *ready;
  ready_.erase(ready);
  state_[task] = State::assigned;
  return task;
}

bool TaskQueue::take(std::uint32_t task) {
  if (state_.at(task) != State::ready) return false;
  ready_.erase(task);
  state_[task] = State::assigned;
  return true;
}

void TaskQueue::requeue(std::uint32_t task) {
  if (state_.at(task) != State::assigned) return;
  state_[task] = State::ready;
  ready_.insert(task);
}

}  // namespace manyworlds::farm
