#include "core/step/run/fluid_runs.hpp"

#include <algorithm>
#include <utility>

#include "core/step/run/run_beside.hpp"

namespace manyworlds::core::step {
namespace {

constexpr std::size_t kMaxBranches = 6, kMaxRuns = 16;

bool are_those_of(TransportEfficiency& efficiency, const std::vector<AskedEfficiencies::Answer>& answers) {
  return std::all_of(answers.begin(), answers.end(),
                     [&](const AskedEfficiencies::Answer& answer) { return answer.is_that_of(efficiency); });
}

std::int64_t ops_of(const CompiledStep& compiled) {
  std::int64_t ops = 0;
  for (const workload::Program& program : compiled.programs()) ops += std::ssize(program.ops);
  return ops;
}

/// Returns about how much memory a compiled step takes: its programs with what waits for what and the sequences of
/// their collectives, and the numbers of its instances.
std::int64_t compiled_bytes(const CompiledStep& compiled) {
  constexpr std::int64_t kPerOp = std::int64_t{sizeof(workload::Op)} + 32, kPerInstance = 8;
  return kPerOp * ops_of(compiled) + kPerInstance * static_cast<std::int64_t>(compiled.instances());
}

/// Returns about how much memory the state of a step takes.
std::int64_t state_bytes(const CompiledStep& compiled) {
  constexpr std::int64_t kPerInstance = 20, kPerOp = 8, kPerRank = 2'000, kPerLink = 100;
  return kPerInstance * static_cast<std::int64_t>(compiled.instances()) + kPerOp * ops_of(compiled) +
         kPerRank * std::ssize(compiled.symmetry().representative_rank) +
         kPerLink * static_cast<std::int64_t>(compiled.link_numbers());
}

}  // namespace

/// The questions are those that a run of its own would ask, up to the first that is answered differently.
const FluidRuns::Run* FluidRuns::equal_run(std::int64_t slowed_by_ppm, TransportEfficiency& efficiency) const {
  for (const Run& run : runs_)
    if (run.slowed_by_ppm == slowed_by_ppm && are_those_of(efficiency, run.answers)) return &run;
  return nullptr;
}

const FluidRuns::Branch* FluidRuns::longest_branch(std::int64_t slowed_by_ppm, TransportEfficiency& efficiency) const {
  const Branch* longest = nullptr;
  for (const Branch& branch : branches_) {
    if (branch.slowed_by_ppm != slowed_by_ppm && branch.fork.is_after_contended) continue;
    if (!are_those_of(efficiency, branch.answers)) continue;
    if (longest == nullptr || branch.step->entries() > longest->step->entries()) longest = &branch;
  }
  return longest;
}

void FluidRuns::keep_branch(const Step& step, const FluidNetwork::Fork& fork, std::int64_t slowed_by_ppm) {
  if (branches_.size() == kMaxBranches) return;
  if ((std::ssize(branches_) + 1) * state_bytes(compiled_) > max_bytes_) return;
  std::vector<AskedEfficiencies::Answer> answers = step.answers();
  answers.resize(fork.answers);
  branches_.push_back({slowed_by_ppm, fork, std::move(answers), step.clone()});
}

std::int64_t FluidRuns::bytes() const {
  std::int64_t total = compiled_bytes(compiled_) + std::ssize(branches_) * state_bytes(compiled_);
  for (const Run& run : runs_) total += std::ssize(run.contended) * std::int64_t{sizeof(ContendedCollective)};
  return total;
}

/// The run with slower collectives on another thread, from where the first collective of the other is contended.
class FluidRuns::Beside {
 public:
  explicit Beside(const FluidRuns& runs, const Needs& needs) : runs_(runs), needs_(needs) {}
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside() {
    if (run_) run_->stop();
  }

  /// `step` is at `fork`. What fails needs a router, which threads cannot share.
  void begin(const Step& step, const FluidNetwork::Fork& fork) {
    if (needs_.helpers == nullptr || needs_.helpers->threads() == 1 || run_) return;
    if (runs_.compiled_.configuration().has_failures()) return;
    run_ = std::make_shared<RunBeside>(runs_.compiled_, step, fork, kSlowedByPpm, needs_.packets, runs_.results_,
                                       needs_.reached);
    needs_.helpers->offer(run_);
  }
  /// Returns the run at its end, or null if it has not begun.
  const RunBeside* finish() {
    if (run_) needs_.helpers->finish(*run_);
    return run_.get();
  }

 private:
  const FluidRuns& runs_;
  const Needs& needs_;
  std::shared_ptr<RunBeside> run_;
};

StepResult FluidRuns::run(const Needs& needs) {
  Beside beside(*this, needs);
  const Run* as_it_is = equal_run(0, needs.efficiency);
  if (as_it_is == nullptr) as_it_is = &run(0, needs, beside);
  StepResult result = as_it_is->result;
  result.fluid = needs.measure(as_it_is->contended);
  if (result.fluid.mean == 0) return result;
  const Run* slowed = equal_run(kSlowedByPpm, needs.efficiency);
  if (slowed == nullptr) {
    const RunBeside* done = beside.finish();
    slowed =
        done != nullptr ? &keep_run(kSlowedByPpm, done->step(), done->result()) : &run(kSlowedByPpm, needs, beside);
  }
  result.fluid.step = error_of_step(result.fluid.mean, result.step_ps, slowed->result.step_ps);
  return result;
}

const FluidRuns::Run& FluidRuns::run(std::int64_t slowed_by_ppm, const Needs& needs, Beside& beside) {
  const Branch* branch = longest_branch(slowed_by_ppm, needs.efficiency);
  const auto step =
      branch == nullptr
          ? std::make_unique<Step>(compiled_, needs.episodes, needs.efficiency, results_, nullptr, needs.reached)
          : std::make_unique<Step>(*branch->step, branch->fork, needs.efficiency, results_, needs.reached);
  step->slow_contended(slowed_by_ppm);
  if (slowed_by_ppm == 0) {
    bool is_kept = branch != nullptr;  // the fork where it begins
    step->watch([&, is_kept](const FluidNetwork::Fork& fork) mutable {
      if (!std::exchange(is_kept, false)) keep_branch(*step, fork, slowed_by_ppm);
      if (fork.begins_contention) beside.begin(*step, fork);
    });
  }
  while (true) {
    auto outcome = step->advance();
    if (auto* const done = std::get_if<StepResult>(&outcome)) return keep_run(slowed_by_ppm, *step, std::move(*done));
    needs.add_missing(std::get<MissingResults>(outcome));
  }
}

const FluidRuns::Run& FluidRuns::keep_run(std::int64_t slowed_by_ppm, const Step& step, StepResult result) {
  if (runs_.size() == kMaxRuns) runs_.erase(runs_.begin());
  return runs_.emplace_back(Run{slowed_by_ppm, step.answers(), step.contended(), std::move(result)});
}

}  // namespace manyworlds::core::step
