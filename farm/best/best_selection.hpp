// Which steps of a sweep are simulated when only its best experiments are asked for: those whose lower bound says that
// they may be among them, the best bound first. Bounds are a ladder: sums over one micro-batch, known when the sweep is
// planned (core/step/estimate/lower_bound.hpp); the analytic step, a task of its own, if the sums leave the experiment
// open; then the step itself.
//
// An experiment is left out once as many others as are asked for, each with a better bound, have a result that its
// bound is not better than by more than the gap (Sweep::gap). So which are left out follows from bounds and results
// alone: the same for any number of ranks, and after any interruption.
//
// If a Pareto front is asked for (Sweep::front), an experiment is left out once as many others dominate it, each with a
// better bound of the objective, a result that its bound is not better than by more than the gap, and no worse a value
// in the other column, of which it has a bound too, or the value itself. With a gap only those others count that one
// rank would have simulated, which shows when everything with a lower bound has settled or been left out: what a
// dominated one leaves within the gap, those that dominate it may not.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "farm/best/skyband.hpp"
#include "farm/coordinator/selection.hpp"
#include "farm/plan/sweep_job.hpp"
#include "farm/results/result_tables.hpp"

namespace manyworlds::farm {

class BestSelection : public Selection {
 public:
  /// Keeps `at_once` tasks open. The job must outlive it, and ask for its best.
  BestSelection(const SweepJob& job, std::size_t at_once);

  bool holds(std::uint32_t task) const override;
  Decision begin() override { return decide(); }
  Decision settled(std::uint32_t task, const Outcome& outcome) override;

  /// Returns whether a step may be, or is, among the best, from what has settled; always for one without a bound.
  bool is_needed(std::uint32_t step) const { return may_be_best(bounds_[step]); }
  /// The same by its sums over a micro-batch alone.
  bool is_needed_by_sums(std::uint32_t step) const { return may_be_best(floors_[step]); }
  /// Counts all results, where none but those that have settled are to come.
  void finish() { add_to_front(std::numeric_limits<double>::infinity()); }
  /// Returns by what share of the last of the best, at most, anything else is better, this being at best as good as
  /// `others`, which are not in the sweep; nullopt if there are not so many results yet.
  std::optional<double> proven_gap(double others) const;
  /// Returns by what share, at most, the objective of anything else is better than that of what dominates it but for
  /// that; nullopt if no front is asked for.
  std::optional<double> proven_front_gap() const;

 private:
  bool has_bound(std::uint32_t step) const { return job_.plan().steps[step].bound != kNoBound; }
  std::vector<TwoValues> values_of(std::uint32_t step, const Outcome& outcome) const;
  TwoValues best_values_of(std::uint32_t step, const Outcome& outcome) const;
  bool may_be_best(const TwoValues& at_best) const;
  const TwoValues& told_bounds_of(std::uint32_t step) const;
  double lowest_unsettled() const;
  void add_to_front(double up_to);
  void update_limit();
  void add_results(std::uint32_t step, const std::vector<TwoValues>& values);
  bool open(std::uint32_t task, Decision& decision);
  void settle_bound(std::uint32_t bound, const Outcome& outcome);
  void settle_step(std::uint32_t step, const Outcome& outcome);
  Decision decide();
  void leave_out_the_rest(Decision& decision);

  const SweepJob& job_;
  std::size_t at_once_;
  experiments::Uncertainty uncertainty_;
  std::vector<std::vector<std::uint32_t>> experiments_of_;  // by step
  std::vector<std::vector<std::uint32_t>> steps_of_;        // by bound
  std::vector<TwoValues> floors_;                           // by step: of its best experiment by its sums
  std::vector<TwoValues> bounds_;                           // the same by what is known so far
  struct Result {
    std::uint32_t step;
    TwoValues values;
  };
  std::multimap<double, Result> results_;  // of experiments that ran, by the bounds of their steps
  std::map<std::uint32_t, std::vector<TwoValues>> early_results_;  // of steps whose analytic steps are not known yet
  double limit_ = std::numeric_limits<double>::infinity();  // steps with greater bounds are not needed, without a front
  std::optional<Skyband> front_;
  std::multimap<double, Result> not_in_front_;       // results that are not known yet to count, as results_
  std::multiset<double> open_bounds_;                // of open steps
  std::size_t without_bound_ = 0;                    // steps without a bound that have not settled
  std::set<std::pair<double, std::uint32_t>> held_;  // steps that are neither open nor settled, by their bounds
  enum class State : std::uint8_t { held, open, settled };
  std::vector<State> bound_state_, step_state_;
  std::size_t open_ = 0;
  // Experiments may have the same step or the same bound, which their keys tell once they are compiled: the first task
  // with a key is computed, and its outcome is that of the others.
  std::map<core::sharing::Key, std::uint32_t> first_with_;
  std::map<std::uint32_t, std::optional<Outcome>> outcome_of_first_;  // nullopt: not settled
};

/// A complete sweep that asks for its best as its results show it, whatever ranks have simulated before others showed
/// that nobody needs it.
struct SelectedResults {
  Plan plan;  // without bounds of steps that their sums leave out
  OutcomeOf outcome;
  std::optional<double> proven_gap;  // BestSelection::proven_gap(), of all points
  std::size_t analytic = 0;          // steps whose analytic step is needed
  std::optional<double> front_gap;   // BestSelection::proven_front_gap()
};
SelectedResults selected_results(const SweepJob& job, const OutcomeOf& outcome);

}  // namespace manyworlds::farm
