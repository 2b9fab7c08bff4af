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

/// Returns the minimised objective of the experiments of a step if it has this outcome.
std::vector<double> BestSelection::values_of(std::uint32_t step, const Outcome& outcome) const {
  const io::Results rows = make_rows(
      job_.sweep(), job_.plan(), [&](std::uint32_t) -> const Outcome& { return outcome; }, uncertainty_,
      experiments_of_[step]);
  return minimised_objective(rows, job_.sweep().objective);
}

double BestSelection::best_value_of(std::uint32_t step, const Outcome& outcome) const {
  const std::vector<double> values = values_of(step, outcome);
  return *std::min_element(values.begin(), values.end());
}

bool BestSelection::may_be_best(double bound) const {
  return bound != kInfinity && bound <= limit_;
}

/// Finds the lowest bound behind which nobody is needed: the results of all steps with a lower bound are known by then,
/// and it is no better than the last of the best of these by more than the gap.
void BestSelection::update_limit() {
  std::vector<double> best;  // of the results of bounds up to this one, ascending
  limit_ = kInfinity;
  for (auto next = results_.begin(); next != results_.end();) {
    const double bound = next->first;
    for (; next != results_.end() && next->first == bound; ++next) {
      best.insert(std::upper_bound(best.begin(), best.end(), next->second), next->second);
      if (best.size() > job_.sweep().best) best.pop_back();
    }
    if (best.size() < job_.sweep().best) continue;
    const double needed = better_by(best.back(), job_.sweep().gap) + kRounding * std::abs(best.back());
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
    const double value = outcome.ok() ? std::max(best_value_of(step, outcome), floors_[step]) : floors_[step];
    if (held_.erase({bounds_[step], step}) > 0 && step_state_[step] == State::held) held_.emplace(value, step);
    bounds_[step] = value;
    if (const auto early = early_results_.extract(step)) add_results(step, early.mapped());
  }
}

void BestSelection::settle_step(std::uint32_t step, const Outcome& outcome) {
  if (std::exchange(step_state_[step], State::settled) == State::open) --open_;
  // A journal may know a step without its bound, which is part of the answer all the same.
  const bool has_bound_yet = !has_bound(step) || bound_state_[job_.plan().steps[step].bound] == State::settled;
  if (has_bound_yet) held_.erase({bounds_[step], step});
  if (!outcome.ok()) return;
  if (has_bound_yet)
    add_results(step, values_of(step, outcome));
  else
    early_results_.emplace(step, values_of(step, outcome));
}

/// Adds the results of a step's experiments, in the place of its bound.
void BestSelection::add_results(std::uint32_t step, const std::vector<double>& values) {
  for (const double value : values) {
    if (value == kInfinity) continue;
    MANYWORLDS_CHECK(value >= bounds_[step] - kRounding * std::abs(value),
                     "the step of experiment {} is better than its lower bound allows",
                     job_.plan().steps[step].experiment);
    results_.emplace(bounds_[step], value);
  }
  update_limit();
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

/// Counts what one rank would have opened alone: others may have simulated more, and have more analytic steps.
std::optional<double> BestSelection::proven_gap(double others) const {
  std::vector<double> values;
  for (const auto& [bound, value] : results_)
    if (may_be_best(bound)) values.push_back(value);
  const std::size_t last = job_.sweep().best - 1;
  if (values.size() <= last) return std::nullopt;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(last), values.end());
  for (std::uint32_t step = 0; step < bounds_.size(); ++step)
    if (!is_needed(step)) others = std::min(others, is_needed_by_sums(step) ? bounds_[step] : floors_[step]);
  return share_between(others, values[last]);
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
  SelectedResults result{job.plan(), nullptr, selection->proven_gap(bound_of_unlisted(job.sweep())), 0};
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
