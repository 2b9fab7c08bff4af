// Steps of programs that tests read or write down.
#pragma once

#include "experiments/programs/program_file.hpp"
#include "experiments/programs/timed_programs.hpp"
#include "tests/core/step/step_configurations.hpp"

namespace manyworlds::tests {

/// Returns the step of programs on nodes of eight GPUs, one per rank, with what the library has been told.
inline step::StepResult step_of(const experiments::programs::StreamPrograms& programs,
                                network::Fidelity fidelity = network::Fidelity::analytic,
                                const std::vector<collective::TunerRule>& rules = {}) {
  Cluster cluster;
  const auto ranks = static_cast<std::uint32_t>(programs.ranks.program_of_rank.size());
  cluster.gpus_per_node = std::min(ranks, 8u);
  cluster.nodes = (ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  step::Configuration machines = config_of(cluster, 1, 1, 1);
  machines.programs = std::make_shared<const workload::GivenPrograms>(
      experiments::programs::timed_on(programs, machines.gpu, nullptr, programs.name).programs);
  machines.model = {};
  machines.strategy = {};
  machines.transport.fidelity = fidelity;
  machines.collectives.tuner_rules = rules;
  return run_at(machines, fidelity,
                step::can_deduplicate_ranks(machines) ? step::Ranks::representatives : step::Ranks::all);
}

/// Returns the time of one collective of groups such as "[0,1],[2,3]" on `ranks` GPUs, alone, written down by hand.
inline Time alone(const std::string& kind, std::int64_t bytes, const std::string& groups, std::uint32_t ranks,
                  network::Fidelity fidelity = network::Fidelity::analytic,
                  const std::vector<collective::TunerRule>& rules = {}) {
  const std::string text = fmt::format(
      "{{\"manyworlds_program\":1,\"name\":\"one\"}}\n{{\"dimension\":\"c\"}}\n{{\"groups\":\"c\",\"ranks\":[{}]}}\n"
      "{{\"program\":\"p\",\"ranks\":\"0-{}\",\"streams\":[\"s\"]}}\n"
      "{{\"collective\":\"{}\",\"in\":\"c\",\"bytes\":{},\"stream\":\"s\"}}\n",
      groups, ranks - 1, kind, bytes);
  return step_of(experiments::programs::parse_program_file(text, "one"), fidelity, rules).step_ps;
}

/// Returns the time of one transfer from rank 0 to rank 1, alone.
inline Time transfer_alone(std::int64_t bytes, network::Fidelity fidelity = network::Fidelity::analytic) {
  const std::string text = fmt::format(
      "{{\"manyworlds_program\":1,\"name\":\"one\"}}\n{{\"dimension\":\"c\",\"kind\":\"pairs\"}}\n"
      "{{\"groups\":\"c\",\"ranks\":[[0,1]]}}\n{{\"program\":\"p\",\"ranks\":\"0\",\"streams\":[\"s\"]}}\n"
      "{{\"send\":\"c\",\"bytes\":{0},\"stream\":\"s\"}}\n{{\"program\":\"q\",\"ranks\":\"1\",\"streams\":[\"s\"]}}\n"
      "{{\"receive\":\"c\",\"bytes\":{0},\"stream\":\"s\"}}\n",
      bytes);
  return step_of(experiments::programs::parse_program_file(text, "one"), fidelity).step_ps;
}

/// Returns what an InputError says; "no error" if there is none.
template <class Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace manyworlds::tests
