#include "farm/effort/one_by_one.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "core/base/error.hpp"
#include "core/step/run/result.hpp"
#include "farm/effort/weighted_draw.hpp"

namespace manyworlds::farm {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMinSamples = 3;

/// Returns the bytes of a step's result, but for what it took.
std::string answer_of(core::step::StepResult result) {
  result.computed = {};
  result.cpu_s = 0;
  return core::step::encode(result);
}

/// The steps that ran, what each took in the sweep, and the draw of some: in equal parts in proportion to what all of
/// their experiments were expected to take, and to what these would take if each took what the step did.
class Draw {
 public:
  Draw(const Plan& plan, const OutcomeOf& outcome) : in_sweep_s_(plan.steps.size(), 0) {
    double expected = 0;
    for (std::uint32_t step = 0; step < plan.steps.size(); ++step) {
      if (!outcome(plan.task_of_step(step)).ok()) continue;
      in_sweep_s_[step] = core::step::decode_step(outcome(plan.task_of_step(step)).bytes).cpu_s;
      expected += plan.steps[step].cost * plan.steps[step].experiments;
      all_s_ += in_sweep_s_[step] * plan.steps[step].experiments;
    }
    std::vector<double> weights;
    for (std::uint32_t step = 0; step < plan.steps.size(); ++step) {
      const double cost = outcome(plan.task_of_step(step)).ok() ? plan.steps[step].cost : 0;
      const double sum = cost / std::max(expected, 1e-9) + in_sweep_s_[step] / std::max(all_s_, 1e-9);
      weights.push_back(sum * plan.steps[step].experiments);
    }
    draw_ = WeightedDraw(weights);
  }
  bool is_empty() const { return draw_.is_empty(); }
  /// Returns what all experiments would take if each took what its step did in the sweep.
  double all_s() const { return all_s_; }
  double in_sweep_s(std::uint32_t step) const { return in_sweep_s_[step]; }
  std::uint32_t step(std::uint64_t number) const { return draw_.item(number); }
  double probability(std::uint32_t step) const { return draw_.probability(step); }

 private:
  std::vector<double> in_sweep_s_;  // by step
  double all_s_ = 0;
  WeightedDraw draw_;
};

double cpu_of_sweep_s(const Plan& plan, const OutcomeOf& outcome, const Draw& draw) {
  double cpu_s = 0;
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) cpu_s += draw.in_sweep_s(step);
  for (std::uint32_t task = 0; task < plan.collectives.size(); ++task)
    if (outcome(task).ok()) cpu_s += decode_collective(outcome(task).bytes).effort.cpu_s;
  return cpu_s;
}

}  // namespace

std::optional<OneByOne> estimate_one_by_one(const SweepJob& job, const OutcomeOf& outcome, double elapsed_s,
                                            const ComputeAlone& compute_alone, const OneByOneLimits& limits) {
  const Plan& plan = job.plan();
  const Draw draw(plan, outcome);
  if (draw.is_empty() || cpu_of_sweep_s(plan, outcome, draw) < limits.min_cpu_s) return std::nullopt;
  const auto begin = steady_clock::now();
  std::map<std::uint32_t, double> alone_s;  // by step
  std::vector<double> estimates_s;
  while (estimates_s.size() < limits.samples) {
    const std::chrono::duration<double> spent = steady_clock::now() - begin;
    // Fewer say nothing, so they may take longer.
    const int patience = estimates_s.size() < kMinSamples ? 4 : 1;
    const double left_s = patience * limits.share_of_elapsed * elapsed_s - spent.count();
    const std::uint32_t step = draw.step(estimates_s.size());
    const auto [known, is_new] = alone_s.try_emplace(step, 0);
    // Alone a step takes no less than in the sweep, if it was computed there.
    if (left_s < (is_new ? draw.in_sweep_s(step) : 0)) break;
    if (is_new) {
      const std::uint32_t task = plan.task_of_step(step);
      const ComputedAlone alone = compute_alone(task, ComputedAlone::kNoLimit);
      if (!alone.ok()) return std::nullopt;
      MANYWORLDS_CHECK(answer_of(core::step::decode_step(alone.results.back())) ==
                           answer_of(core::step::decode_step(outcome(task).bytes)),
                       "step {} has another result alone than in the sweep", job.tasks()[task].key.hex());
      known->second = effort_of(alone.results).cpu_s;
    }
    estimates_s.push_back(draw.all_s() + (known->second - draw.in_sweep_s(step)) * plan.steps[step].experiments /
                                             draw.probability(step));
  }
  if (estimates_s.size() < kMinSamples) return std::nullopt;
  const DrawnTotal total = total_of(estimates_s);
  return OneByOne{total.total, total.error, std::ssize(estimates_s)};
}

}  // namespace manyworlds::farm
