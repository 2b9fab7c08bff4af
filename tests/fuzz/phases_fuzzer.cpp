// Any text as a document of phases: a file that is refused, or phases on pools that exist, whose rollouts decode every
// token of every response once.
#include <numeric>

#include "core/base/error.hpp"
#include "experiments/phase_files/phases_file.hpp"
#include "experiments/phase_files/response_lengths.hpp"
#include "experiments/rollouts/decoding.hpp"
#include "experiments/rollouts/decoding_grid.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments::phases;

namespace {

void decode(const Rollout& rollout) {
  constexpr std::int64_t kMaxSamples = 512, kReplicas = 3;
  if (rollout.samples() > kMaxSamples || rollout.lengths.form == ResponseLengths::Form::table) return;
  const std::vector<std::int64_t> tokens = response_tokens(rollout.lengths, rollout.samples(), "");
  std::int64_t decoded = 0;
  std::vector<Decoding> replicas;
  for (const auto& samples : dealt_out(tokens, kReplicas)) {
    replicas.push_back(decoding_of(samples, rollout.prompt_tokens, rollout.concurrent));
    for (const Stretch& one : replicas.back().stretches) {
      fuzz::require(one.samples > 0 && one.samples <= rollout.concurrent && one.steps > 0);
      decoded += one.samples * one.steps;
    }
  }
  const std::int64_t all = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
  fuzz::require(decoded + rollout.samples() == all);  // a prefill makes the first token of a response
  const DecodingGrid grid = decoding_grid(replicas);
  fuzz::require(grid.empty() == (decoded == 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const PhasesFile file = parse_phases({reinterpret_cast<const char*>(data), size}, "phases.yaml");
    fuzz::require(!file.phases.empty() && !file.pools.empty());
    for (std::size_t i = 0; i < file.phases.size(); ++i) {
      const Phase& phase = file.phases[i];
      fuzz::require(phase.pool < file.pools.size());
      for (const std::size_t before : phase.after) fuzz::require(before < i);
      if (phase.kind == Kind::transfer) fuzz::require(phase.from && *phase.from < file.phases.size());
      if (phase.kind == Kind::generation) decode(phase.rollout);
    }
  } catch (const core::InputError&) {
  }
  return 0;
}
