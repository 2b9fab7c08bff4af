#include "core/step/run/fluid_runs.hpp"

#include <algorithm>
#include <utility>

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

const FluidRuns::Run& FluidRuns::run(std::int64_t slowed_by_ppm, const Needs& needs) {
  if (const Run* known = equal_run(slowed_by_ppm, needs.efficiency)) return *known;
  const Branch* branch = longest_branch(slowed_by_ppm, needs.efficiency);
  const auto step =
      branch == nullptr
          ? std::make_unique<Step>(compiled_, needs.episodes, needs.efficiency, results_, nullptr, needs.reached)
          : std::make_unique<Step>(*branch->step, branch->fork, needs.efficiency, needs.reached);
  step->slow_contended(slowed_by_ppm);
  if (slowed_by_ppm == 0) {
    bool is_kept = branch != nullptr;  // the fork where it begins
    step->watch([&, is_kept](const FluidNetwork::Fork& fork) mutable {
      if (!std::exchange(is_kept, false)) keep_branch(*step, fork, slowed_by_ppm);
    });
  }
  while (true) {
    auto outcome = step->advance();
    if (auto* const done = std::get_if<StepResult>(&outcome)) {
      if (runs_.size() == kMaxRuns) runs_.erase(runs_.begin());
      return runs_.emplace_back(Run{slowed_by_ppm, step->answers(), step->contended(), std::move(*done)});
    }
    needs.add_missing(std::get<MissingResults>(outcome));
  }
}

}  // namespace manyworlds::core::step
