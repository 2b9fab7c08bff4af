#include "farm/sweep/best_selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "core/step/run/result.hpp"

namespace manyworlds::farm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Objectives are computed in floating point: what is nearer than this counts as equal, and is simulated.
constexpr double kRounding = 1e-12;

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
      more_is_better_(experiments::objective_named(job.sweep().objective).more_is_better),
      uncertainty_(experiments::Uncertainty::compiled()),
      experiments_of_(job.plan().steps.size()),
      steps_of_(job.plan().bounds.size()),
      floors_(job.plan().steps.size(), -kInfinity),
      bound_state_(job.plan().bounds.size()),
      step_state_(job.plan().steps.size()) {
  MANYWORLDS_CHECK(job.sweep().best > 0, "{} best experiments are asked for", job.sweep().best);
  const Plan& plan = job.plan();
  for (std::uint32_t id = 0; id < plan.experiments.size(); ++id)
    if (const std::uint32_t step = plan.experiments[id].step; step != kNoStep) experiments_of_[step].push_back(id);
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) {
    if (!has_bound(step)) continue;
    core::step::StepResult at_best;
    at_best.step_ps = plan.steps[step].floor_ps;
    floors_[step] = best_value_of(step, {Status::ok, core::step::encode(at_best), 0});
    steps_of_[plan.steps[step].bound].push_back(step);
    held_.emplace(floors_[step], step);
  }
  bounds_ = floors_;
}

bool BestSelection::holds(std::uint32_t task) const {
  const Plan& plan = job_.plan();
  return plan.is_bound(task) || (plan.is_step(task) && has_bound(task - plan.task_of_step(0)));
}

/// Returns the objective of the experiments of a step if it has this outcome, less is better; infinity where there is
/// none.
std::vector<double> BestSelection::values_of(std::uint32_t step, const Outcome& outcome) const {
  const io::Results rows = make_rows(
      job_.sweep(), job_.plan(), [&](std::uint32_t) -> const Outcome& { return outcome; }, uncertainty_,
      experiments_of_[step]);
  const io::Column& column = *rows.experiments.find(job_.sweep().objective);
  std::vector<double> values;
  for (std::size_t row = 0; row < rows.experiments.rows(); ++row) {
    const double value = column.number_at(row);
    values.push_back(std::isnan(value) ? kInfinity : more_is_better_ ? -value : value);
  }
  return values;
}

double BestSelection::best_value_of(std::uint32_t step, const Outcome& outcome) const {
  const std::vector<double> values = values_of(step, outcome);
  return *std::min_element(values.begin(), values.end());
}

bool BestSelection::may_be_best(double bound) const {
  if (bound == kInfinity) return false;
  if (results_.size() < job_.sweep().best) return true;
  const double last = results_[job_.sweep().best - 1];
  return bound <= last + kRounding * std::abs(last);
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
  if (!outcome.ok()) return;
  for (const std::uint32_t step : steps_of_[bound]) {
    const double value = std::max(best_value_of(step, outcome), floors_[step]);
    if (held_.erase({bounds_[step], step}) > 0 && step_state_[step] == State::held) held_.emplace(value, step);
    bounds_[step] = value;
  }
}

void BestSelection::settle_step(std::uint32_t step, const Outcome& outcome) {
  if (std::exchange(step_state_[step], State::settled) == State::open) --open_;
  // A journal may know a step without its bound, which is part of the answer all the same.
  if (!has_bound(step) || bound_state_[job_.plan().steps[step].bound] == State::settled)
    held_.erase({bounds_[step], step});
  if (!outcome.ok()) return;
  for (const double value : values_of(step, outcome)) {
    if (value == kInfinity) continue;
    MANYWORLDS_CHECK(value >= bounds_[step] - kRounding * std::abs(value),
                     "the step of experiment {} is better than its lower bound allows",
                     job_.plan().steps[step].experiment);
    results_.insert(std::upper_bound(results_.begin(), results_.end(), value), value);
  }
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
/// worse and results better, so that behind the first step that is not needed none is or will be.
Selection::Decision BestSelection::decide() {
  Decision decision;
  const Plan& plan = job_.plan();
  for (auto next = held_.begin(); next != held_.end() && open_ < at_once_;) {
    const auto [value, step] = *next;
    if (!may_be_best(value)) break;
    State& bound = bound_state_[plan.steps[step].bound];
    if (bound == State::settled && step_state_[step] == State::settled) {
      next = held_.erase(next);
    } else if (bound == State::held) {
      if (open(plan.task_of_bound(plan.steps[step].bound), decision)) bound = State::open;
      ++next;
    } else if (bound == State::settled && open(plan.task_of_step(step), decision)) {
      step_state_[step] = State::open;
      next = held_.erase(next);
    } else {
      ++next;
    }
  }
  if (held_.empty() || !may_be_best(held_.begin()->first)) leave_out_the_rest(decision);
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

SelectedResults selected_results(const SweepJob& job, const OutcomeOf& outcome) {
  auto selection = std::make_shared<BestSelection>(job, 1);
  for (std::uint32_t task = 0; task < job.tasks().size(); ++task)
    if (const Status status = outcome(task).status; status != Status::pending && status != Status::left_out)
      selection->settled(task, outcome(task));
  SelectedResults result{job.plan(), nullptr};
  for (std::uint32_t step = 0; step < result.plan.steps.size(); ++step)
    if (!selection->is_needed_by_sums(step)) result.plan.steps[step].bound = kNoBound;
  auto left_out = std::make_shared<const Outcome>(Outcome{Status::left_out, "", 0});
  result.outcome = [first = job.plan().task_of_step(0), outcome, selection,
                    left_out](std::uint32_t task) -> const Outcome& {
    const Outcome& known = outcome(task);
    return task >= first && known.ok() && !selection->is_needed(task - first) ? *left_out : known;
  };
  return result;
}

}  // namespace manyworlds::farm
