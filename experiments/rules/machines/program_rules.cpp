#include "experiments/rules/machines/program_rules.hpp"

#include <algorithm>

#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

/// Returns the number of GPUs that ranks of given programs need: up to the last that has one.
std::int64_t gpus_of(const core::workload::GivenRanks& ranks) {
  if (ranks.gpu_of_rank.empty()) return std::ssize(ranks.program_of_rank);
  return std::int64_t{*std::max_element(ranks.gpu_of_rank.begin(), ranks.gpu_of_rank.end())} + 1;
}

}  // namespace

std::vector<Rule> program_rules() {
  return {
      rule("program_changes", "program.replicas and program.edits", "replicas and edits are of programs that are given",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (e.configuration.programs) return std::nullopt;
             if (e.program.replicas > 1) return fmt::format("replicas {} without a file", e.program.replicas);
             if (!e.program.edits.empty()) return fmt::format("edits {} without a file", e.program.edits);
             return std::nullopt;
           }),
      rule("program_ranks", "program.file", "the ranks of the programs must have a GPU each", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& programs = e.configuration.programs;
             if (!programs || gpus_of(*programs->ranks) <= e.cluster.gpus()) return std::nullopt;
             return fmt::format("{} ranks, GPUs up to number {}, of {}", programs->ranks->program_of_rank.size(),
                                gpus_of(*programs->ranks) - 1, e.cluster.gpus());
           }),
  };
}

}  // namespace manyworlds::experiments
