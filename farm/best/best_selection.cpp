#include "farm/best/best_selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "core/step/run/result.hpp"
#include "farm/best/minimised_objective.hpp"

namespace manyworlds::farm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns the outcome of a task as that of another one, which then took nothing.
Outcome as_known(const Outcome& outcome) {
  if (!outcome.ok()) return {outcome.status, outcome.bytes, 0};
  core::step::StepResult result = core::step::decode_step(outcome.bytes);
  result.computed = {};
  result.cpu_s = 0;
  return {Status::ok, core::step::encode(result), 0};
}

}  // namespace

BestSelection::BestSelection(const SweepJob& job, std::size_t at_once)
    : job_(job),
      at_once_(at_once),
      uncertainty_(experiments::Uncertainty::compiled()),
      experiments_of_(job.plan().steps.size()),
      steps_of_(job.plan().bounds.size()),
      floors_(job.plan().steps.size()),
      bound_state_(job.plan().bounds.size()),
      step_state_(job.plan().steps.size()) {
  MANYWORLDS_CHECK(job.sweep().best > 0, "{} best experiments are asked for", job.sweep().best);
  if (!job.sweep().front.empty()) front_.emplace(job.sweep().best, job.sweep().gap);
  const Plan& plan = job.plan();
  for (std::uint32_t id = 0; id < plan.experiments.size(); ++id)
    if (const std::uint32_t step = plan.experiments[id].step; step != kNoStep) experiments_of_[step].push_back(id);
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) {
    if (!has_bound(step)) {
      ++without_bound_;
      continue;
    }
    core::step::StepResult at_best;
    at_best.step_ps = plan.steps[step].floor_ps;
    floors_[step] = best_values_of(step, {Status::ok, core::step::encode(at_best), 0});
    steps_of_[plan.steps[step].bound].push_back(step);
    held_.emplace(floors_[step].objective, step);
  }
  bounds_ = floors_;
}

bool BestSelection::holds(std::uint32_t task) const {
  const Plan& plan = job_.plan();
  return plan.is_bound(task) || (plan.is_step(task) && has_bound(task - plan.task_of_step(0)));
}

/// Returns the minimised objective, and the column of a front, of the experiments of a step if it has this outcome.
std::vector<TwoValues> BestSelection::values_of(std::uint32_t step, const Outcome& outcome) const {
  const io::Results rows = make_rows(
      job_.sweep(), job_.plan(), [&](std::uint32_t) -> const Outcome& { return outcome; }, uncertainty_,
      experiments_of_[step]);
  std::vector<TwoValues> values;
  for (const double value : minimised_objective(rows, job_.sweep().objective)) values.push_back({value, 0});
  if (!front_) return values;
  const std::vector<double> others = minimised_objective(rows, job_.sweep().front);
  for (std::size_t i = 0; i < values.size(); ++i) values[i].other = others[i];
  return values;
}

TwoValues BestSelection::best_values_of(std::uint32_t step, const Outcome& outcome) const {
  TwoValues best{kInfinity, kInfinity};
  for (const TwoValues& values : values_of(step, outcome))
    best = {std::min(best.objective, values.objective), std::min(best.other, values.other)};
  return best;
}

bool BestSelection::may_be_best(const TwoValues& at_best) const {
  if (front_) return front_->may_have(at_best);
  return at_best.objective != kInfinity && at_best.objective <= limit_;
}

/// Returns the bounds of a step as one rank knows them, whatever others have computed.
const TwoValues& BestSelection::told_bounds_of(std::uint32_t step) const {
  return is_needed_by_sums(step) ? bounds_[step] : floors_[step];
}

/// Returns the lowest bound of a step that has neither settled nor been left out.
double BestSelection::lowest_unsettled() const {
  if (without_bound_ > 0) return -kInfinity;
  return std::min(held_.empty() ? kInfinity : held_.begin()->first,
                  open_bounds_.empty() ? kInfinity : *open_bounds_.begin());
}

/// Lets those results count for a front whose bounds are no higher, and which one rank would have.
void BestSelection::add_to_front(double up_to) {
  if (!front_) return;
  auto next = not_in_front_.begin();
  for (; next != not_in_front_.end() && next->first <= up_to; ++next)
    if (is_needed(next->second.step)) front_->add(next->first, next->second.values);
  not_in_front_.erase(not_in_front_.begin(), next);
}

/// Finds the lowest bound behind which nobody is needed: the results of all steps with a lower bound are known by then,
/// and it is no better than the last of the best of these by more than the gap.
void BestSelection::update_limit() {
  std::vector<double> best;  // of the results of bounds up to this one, ascending
  limit_ = kInfinity;
  for (auto next = results_.begin(); next != results_.end();) {
    const double bound = next->first;
    for (; next != results_.end() && next->first == bound; ++next) {
      const double value = next->second.values.objective;
      best.insert(std::upper_bound(best.begin(), best.end(), value), value);
      if (best.size() > job_.sweep().best) best.pop_back();
    }
    if (best.size() < job_.sweep().best) continue;
    const double needed = better_by(best.back(), job_.sweep().gap) + kObjectiveRounding * std::abs(best.back());
    if (next != results_.end() && needed >= next->first) continue;
    limit_ = std::max(needed, bound);
    return;
  }
}

Selection::Decision BestSelection::settled(std::uint32_t task, const Outcome& outcome) {
  const Plan& plan = job_.plan();
  if (const auto first = outcome_of_first_.find(task); first != outcome_of_first_.end())
    first->second = as_known(outcome);
  if (plan.is_bound(task)) settle_bound(task - plan.task_of_bound(0), outcome);
  if (plan.is_step(task)) settle_step(task - plan.task_of_step(0), outcome);
  return decide();
}

/// Without an analytic step the sums remain the bound.
void BestSelection::settle_bound(std::uint32_t bound, const Outcome& outcome) {
  if (std::exchange(bound_state_[bound], State::settled) == State::open) --open_;
  for (const std::uint32_t step : steps_of_[bound]) {
    TwoValues values = floors_[step];
    if (outcome.ok()) {
      const TwoValues best = best_values_of(step, outcome);
      values = {std::max(values.objective, best.objective), std::max(values.other, best.other)};
    }
    if (held_.erase({bounds_[step].objective, step}) > 0 && step_state_[step] == State::held)
      held_.emplace(values.objective, step);
    bounds_[step] = values;
    if (const auto early = early_results_.extract(step)) add_results(step, early.mapped());
  }
}

void BestSelection::settle_step(std::uint32_t step, const Outcome& outcome) {
  const State before = std::exchange(step_state_[step], State::settled);
  if (before == State::open) --open_, open_bounds_.erase(open_bounds_.find(bounds_[step].objective));
  if (before != State::settled && !has_bound(step)) --without_bound_;
  // A journal may know a step without its bound, which is part of the answer all the same.
  const bool has_bound_yet = !has_bound(step) || bound_state_[job_.plan().steps[step].bound] == State::settled;
  if (has_bound_yet) held_.erase({bounds_[step].objective, step});
  if (!outcome.ok()) return;
  if (has_bound_yet)
    add_results(step, values_of(step, outcome));
  else
    early_results_.emplace(step, values_of(step, outcome));
}

/// Adds the results of a step's experiments, in the place of its bound; for a front none is better than this even by
/// rounding, so that what it dominates is dominated by what dominates it.
void BestSelection::add_results(std::uint32_t step, const std::vector<TwoValues>& values) {
  const TwoValues& bound = bounds_[step];
  const auto allows = [](double best, double value) {
    return value == kInfinity || value >= best - kObjectiveRounding * std::abs(value);
  };
  for (const TwoValues& value : values) {
    if (value.objective == kInfinity) continue;
    MANYWORLDS_CHECK(allows(bound.objective, value.objective) && allows(bound.other, value.other),
                     "the step of experiment {} is better than its lower bound allows",
                     job_.plan().steps[step].experiment);
    results_.emplace(bound.objective, Result{step, value});
    if (front_)
      not_in_front_.emplace(bound.objective, Result{step, {value.objective, std::max(value.other, bound.other)}});
  }
  if (!front_) update_limit();
}

/// Opens a task, or settles it as the one with the same key did. Returns false if that one is computed now.
bool BestSelection::open(std::uint32_t task, Decision& decision) {
  const Outcome* known = nullptr;
  if (job_.tasks()[task].storable) {
    const auto [first, is_new] = first_with_.try_emplace(job_.result_key(task), task);
    const auto outcome = outcome_of_first_.try_emplace(first->second).first;
    if (!is_new && !outcome->second) return false;
    if (!is_new) known = &*outcome->second;
  }
  ++open_;
  if (known != nullptr)
    decision.known.emplace_back(task, *known);
  else
    decision.open.push_back(task);
  return true;
}

/// Opens what has the best bounds: the analytic step where only the sums are known, else the step. Bounds only become
/// worse and results better, so that behind the first step that is not needed none is or will be; of a front, what is
/// not needed never will be, and others behind it may.
Selection::Decision BestSelection::decide() {
  Decision decision;
  const Plan& plan = job_.plan();
  for (auto next = held_.begin(); next != held_.end() && open_ < at_once_;) {
    const std::uint32_t step = next->second;
    // Without a gap a result counts at once: what one that nobody needs dominates is dominated anyway.
    add_to_front(job_.sweep().gap > 0 ? lowest_unsettled() : kInfinity);
    if (!is_needed(step)) {
      if (!front_) break;
      decision.leave_out.push_back(plan.task_of_step(step));
      next = held_.erase(next);
      continue;
    }
    State& bound = bound_state_[plan.steps[step].bound];
    if (bound == State::settled && step_state_[step] == State::settled) {
      next = held_.erase(next);
    } else if (bound == State::held) {
      if (open(plan.task_of_bound(plan.steps[step].bound), decision)) bound = State::open;
      ++next;
    } else if (bound == State::settled && open(plan.task_of_step(step), decision)) {
      step_state_[step] = State::open;
      open_bounds_.insert(bounds_[step].objective);
      next = held_.erase(next);
    } else {
      ++next;
    }
  }
  if (held_.empty() || (!front_ && !is_needed(held_.begin()->second))) leave_out_the_rest(decision);
  return decision;
}

void BestSelection::leave_out_the_rest(Decision& decision) {
  const Plan& plan = job_.plan();
  for (const auto& [value, step] : held_) decision.leave_out.push_back(plan.task_of_step(step));
  held_.clear();
  for (std::uint32_t bound = 0; bound < bound_state_.size(); ++bound)
    if (bound_state_[bound] == State::held) {
      bound_state_[bound] = State::settled;
      decision.leave_out.push_back(plan.task_of_bound(bound));
    }
}

/// Counts what one rank would have opened alone: others may have simulated more, and have more analytic steps.
std::optional<double> BestSelection::proven_gap(double others) const {
  std::vector<double> values;
  for (const auto& [bound, result] : results_)
    if (is_needed(result.step)) values.push_back(result.values.objective);
  const std::size_t last = job_.sweep().best - 1;
  if (values.size() <= last) return std::nullopt;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(last), values.end());
  for (std::uint32_t step = 0; step < bounds_.size(); ++step)
    if (!is_needed(step)) others = std::min(others, told_bounds_of(step).objective);
  return share_between(others, values[last]);
}

std::optional<double> BestSelection::proven_front_gap() const {
  if (!front_) return std::nullopt;
  double gap = 0;
  for (std::uint32_t step = 0; step < bounds_.size(); ++step) {
    const TwoValues& bound = told_bounds_of(step);
    if (is_needed(step) || bound.objective == kInfinity || bound.other == kInfinity) continue;
    gap = std::max(gap, share_between(bound.objective, front_->rival_of(bound.other)));
  }
  return gap;
}

namespace {

/// Returns the best objective, minimised, of points that the sweep does not list; infinity if there are none.
double bound_of_unlisted(const experiments::Sweep& sweep) {
  if (!sweep.space || !sweep.space->bound) return kInfinity;
  return minimised(*sweep.space->bound, sweep.objective);
}

}  // namespace

SelectedResults selected_results(const SweepJob& job, const OutcomeOf& outcome) {
  auto selection = std::make_shared<BestSelection>(job, 1);
  for (std::uint32_t task = 0; task < job.tasks().size(); ++task)
    if (const Status status = outcome(task).status; status != Status::pending && status != Status::left_out)
      selection->settled(task, outcome(task));
  selection->finish();
  SelectedResults result{job.plan(), nullptr, selection->proven_gap(bound_of_unlisted(job.sweep())), 0,
                         selection->proven_front_gap()};
  for (std::uint32_t step = 0; step < result.plan.steps.size(); ++step)
    if (!selection->is_needed_by_sums(step))
      result.plan.steps[step].bound = kNoBound;
    else if (result.plan.steps[step].bound != kNoBound)
      ++result.analytic;
  auto left_out = std::make_shared<const Outcome>(Outcome{Status::left_out, "", 0});
  result.outcome = [first = job.plan().task_of_step(0), outcome, selection,
                    left_out](std::uint32_t task) -> const Outcome& {
    const Outcome& known = outcome(task);
    return task >= first && known.ok() && !selection->is_needed(task - first) ? *left_out : known;
  };
  return result;
}

}  // namespace manyworlds::farm
