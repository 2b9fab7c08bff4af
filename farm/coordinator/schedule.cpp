#include "farm/coordinator/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace manyworlds::farm {

namespace {
constexpr int kLooks = 64;
}  // namespace

Schedule::Schedule(const std::vector<Task>& tasks)
    : tasks_(tasks),
      state_(tasks.size(), State::waiting),
      outcomes_(tasks.size()),
      missing_(tasks.size()),
      dependents_(tasks.size()),
      ways_(tasks.size()),
      ready_(Longest{&ways_}) {
  for (std::uint32_t number = 0; number < tasks.size(); ++number) {
    const Task& task = tasks[number];
    MANYWORLDS_CHECK(std::isfinite(task.cost) && task.cost >= 0, "task {} costs {}", number, task.cost);
    for (const auto input : task.inputs) {
      MANYWORLDS_CHECK(input < number, "task {} needs task {}, which comes after it", number, input);
      dependents_[input].push_back(number);
    }
    missing_[number] = static_cast<std::uint32_t>(task.inputs.size());
    cost_left_ += task.cost;
  }
  // Short tasks that long ones wait for would come last by their own cost, and the long ones after them.
  for (auto number = static_cast<std::uint32_t>(tasks.size()); number-- > 0;) {
    for (const auto dependent : dependents_[number]) ways_[number] = std::max(ways_[number], ways_[dependent]);
    ways_[number] += tasks[number].cost;
  }
  for (std::uint32_t number = 0; number < tasks.size(); ++number)
    if (tasks[number].inputs.empty()) state_[number] = State::ready, ready_.insert(number);
}

void Schedule::settle_one(std::uint32_t task, Outcome outcome) {
  if (on_settled) on_settled(task, outcome);
  if (state_[task] == State::ready) ready_.erase(task);
  state_[task] = State::settled;
  ++done_;
  failed_ += outcome.ok() ? 0 : 1;
  cost_left_ -= tasks_[task].cost;
  outcomes_[task] = std::move(outcome);
}

bool Schedule::settle(std::uint32_t task, Outcome outcome) {
  if (settled(task)) return false;
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
      } else if (--missing_[dependent] == 0) {
        state_[dependent] = State::ready;
        ready_.insert(dependent);
      }
    }
  }
  return true;
}

std::optional<std::uint32_t> Schedule::take() {
  if (ready_.empty()) return std::nullopt;
  return hand_out(ready_.begin());
}

std::optional<std::uint32_t> Schedule::take(const std::function<int(const Task&)>& strangeness) {
  if (ready_.empty()) return std::nullopt;
  const double enough = ways_[*ready_.begin()] / 2;
  auto best = ready_.begin();
  int least = strangeness(tasks_[*best]);
  auto next = std::next(best);
  for (int looks = 1; looks < kLooks && least > 0 && next != ready_.end() && ways_[*next] >= enough; ++looks, ++next)
    if (const int strange = strangeness(tasks_[*next]); strange < least) best = next, least = strange;
  return hand_out(best);
}

std::uint32_t Schedule::hand_out(std::set<std::uint32_t, Longest>::iterator ready) {
  const std::uint32_t task = *ready;
  ready_.erase(ready);
  state_[task] = State::out;
  return task;
}

bool Schedule::take(std::uint32_t task) {
  if (state_.at(task) != State::ready) return false;
  ready_.erase(task);
  state_[task] = State::out;
  return true;
}

void Schedule::give_back(std::uint32_t task) {
  if (state_.at(task) != State::out) return;
  state_[task] = State::ready;
  ready_.insert(task);
}

}  // namespace manyworlds::farm
