#include "farm/sweep/one_by_one.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/step/run/result.hpp"
#include "farm/plan/collective_result.hpp"
#include "farm/protocol/frame.hpp"
#include "farm/worker/simulating_worker.hpp"

namespace manyworlds::farm {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMinSamples = 3;

/// A simulating process that has computed nothing yet.
class NewProcess {
 public:
  NewProcess(const SweepJob& job, std::uint64_t memory_bytes, Zygote& zygote)
      : job_(job), zygote_(zygote), process_(zygote.spawn(memory_bytes)) {
    is_ready_ = write_frame(process_.socket, build_request(job.common_spec())) && reply().kind == Kind::ready;
  }
  ~NewProcess() {
    ::close(process_.socket);
    ::kill(process_.pid, SIGKILL);  // its pid cannot be reused before it is reaped
    try {
      zygote_.reap(process_.pid);
    } catch (const std::exception&) {  // the zygote is gone, and the process with it
    }
  }
  NewProcess(const NewProcess&) = delete;
  NewProcess& operator=(const NewProcess&) = delete;

  /// Appends the result of a task; returns whether it could be computed.
  bool compute(std::uint32_t task, const std::vector<std::string>& inputs, std::vector<std::string>& results) {
    if (!is_ready_ || !write_frame(process_.socket, run_request(task, job_.spec(task), inputs))) return false;
    SimulatorReply computed = reply();
    if (computed.kind != Kind::computed || !computed.outcome.ok()) return false;
    results.push_back(std::move(computed.outcome.bytes));
    return true;
  }

 private:
  using Kind = SimulatorReply::Kind;
  SimulatorReply reply() {
    if (const auto frame = read_frame(process_.socket)) return decode_reply(*frame);
    SimulatorReply dead;
    dead.kind = Kind::incompatible;
    return dead;
  }

  const SweepJob& job_;
  Zygote& zygote_;
  Zygote::SimulatingProcess process_;
  bool is_ready_ = false;
};

/// Returns the bytes of a step's result, but for what it took.
std::string answer_of(core::step::StepResult result) {
  result.computed = {};
  result.cpu_s = 0;
  return core::step::encode(result);
}

/// Returns the CPU time of results, the last of which is that of a step.
double cpu_of_s(const std::vector<std::string>& results) {
  double cpu_s = core::step::decode_step(results.back()).cpu_s;
  for (std::size_t input = 0; input + 1 < results.size(); ++input)
    cpu_s += decode_collective(results[input]).effort.cpu_s;
  return cpu_s;
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
    for (std::uint32_t step = 0; step < plan.steps.size(); ++step) {
      const double cost = outcome(plan.task_of_step(step)).ok() ? plan.steps[step].cost : 0;
      const double sum = cost / std::max(expected, 1e-9) + in_sweep_s_[step] / std::max(all_s_, 1e-9);
      up_to_.push_back((up_to_.empty() ? 0 : up_to_.back()) + sum * plan.steps[step].experiments);
    }
  }
  bool is_empty() const { return up_to_.empty() || up_to_.back() == 0; }
  /// Returns what all experiments would take if each took what its step did in the sweep.
  double all_s() const { return all_s_; }
  double in_sweep_s(std::uint32_t step) const { return in_sweep_s_[step]; }
  /// Returns the step with that number among those drawn.
  std::uint32_t step(std::uint64_t number) const {
    const double at = core::unit_interval(core::splitmix64(number)) * up_to_.back();
    return static_cast<std::uint32_t>(std::upper_bound(up_to_.begin(), up_to_.end(), at) - up_to_.begin());
  }
  double probability(std::uint32_t step) const {
    return (up_to_[step] - (step == 0 ? 0 : up_to_[step - 1])) / up_to_.back();
  }

 private:
  std::vector<double> in_sweep_s_, up_to_;  // by step
  double all_s_ = 0;
};

double cpu_of_sweep_s(const Plan& plan, const OutcomeOf& outcome, const Draw& draw) {
  double cpu_s = 0;
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) cpu_s += draw.in_sweep_s(step);
  for (std::uint32_t task = 0; task < plan.collectives.size(); ++task)
    if (outcome(task).ok()) cpu_s += decode_collective(outcome(task).bytes).effort.cpu_s;
  return cpu_s;
}

OneByOne mean_of(const std::vector<double>& estimates_s) {
  OneByOne result;
  const auto count = static_cast<double>(estimates_s.size());
  result.samples = std::ssize(estimates_s);
  result.cpu_s = std::accumulate(estimates_s.begin(), estimates_s.end(), 0.0) / count;
  double squares = 0;
  for (const double estimate_s : estimates_s) squares += (estimate_s - result.cpu_s) * (estimate_s - result.cpu_s);
  result.error_s = std::sqrt(squares / (count * (count - 1)));
  return result;
}

}  // namespace

ComputeAlone in_new_processes(const SweepJob& job, std::uint64_t memory_bytes, Zygote& zygote) {
  return [&job, memory_bytes, &zygote](std::uint32_t task) -> std::optional<std::vector<std::string>> {
    NewProcess process(job, memory_bytes, zygote);
    std::vector<std::string> results;
    for (const std::uint32_t input : job.tasks()[task].inputs)
      if (!process.compute(input, {}, results)) return std::nullopt;
    if (!process.compute(task, std::vector<std::string>(results), results)) return std::nullopt;
    return results;
  };
}

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
    if (spent.count() > patience * limits.share_of_elapsed * elapsed_s) break;
    const std::uint32_t step = draw.step(estimates_s.size());
    const auto [known, is_new] = alone_s.try_emplace(step, 0);
    if (is_new) {
      const std::uint32_t task = plan.task_of_step(step);
      const auto results = compute_alone(task);
      if (!results) return std::nullopt;
      MANYWORLDS_CHECK(answer_of(core::step::decode_step(results->back())) ==
                           answer_of(core::step::decode_step(outcome(task).bytes)),
                       "step {} has another result alone than in the sweep", job.tasks()[task].key.hex());
      known->second = cpu_of_s(*results);
    }
    estimates_s.push_back(draw.all_s() + (known->second - draw.in_sweep_s(step)) * plan.steps[step].experiments /
                                             draw.probability(step));
  }
  if (estimates_s.size() < kMinSamples) return std::nullopt;
  return mean_of(estimates_s);
}

}  // namespace manyworlds::farm
