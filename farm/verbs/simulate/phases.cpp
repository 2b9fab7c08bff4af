// `manyworlds phases FILE`: one iteration of reinforcement learning, as a run of the experiments of its phases and
// arithmetic on their results.
#include "experiments/phases/expanded_phases.hpp"
#include "experiments/text/text.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/verbs/simulate/phases_run.hpp"

namespace manyworlds::farm::commands {
namespace {

int run_phases(const Invocation& invocation) {
  cxxopts::Options options("manyworlds phases",
                           "How long an iteration of reinforcement learning takes: rollout, scoring and update phases "
                           "on shared or separate GPUs, and transfers of weights between them.");
  add_spec_options(options);
  add_guess_option(options);
  add_run_options(options);
  options.add_options()("o,output", "the run directory; default: runs/NAME", cxxopts::value<std::string>(), "RUN_DIR")(
      "json", "all figures, as JSON");
  options.parse_positional({"spec"});
  options.positional_help("FILE.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const SpecOptions spec = read_spec_options(*parsed);
  if (is_follower() && parsed->count("in-process") == 0)
    return run_sweep_job(read_run_options(*parsed, ""), "", false, *invocation.zygote);
  const experiments::phases::ExpandedPhases expanded = experiments::phases::expand(
      experiments::phases::parse_phases(experiments::import::read_text(spec.spec), spec.spec), spec.set,
      experiments::Catalog(spec.catalog));
  refuse_guesses(*parsed, expanded.sweep);
  const RunOptions run = read_run_options(*parsed, run_directory_of(*parsed, expanded.sweep.name));
  check_preconditions(run);
  return run_phases_job(run, expanded, serialize_job(expanded.sweep, {!no_sharing(*parsed), {}}),
                        parsed->count("json") > 0, *invocation.zygote);
}

}  // namespace

Command phases_command() {
  return {.name = "phases",
          .summary = "an iteration of reinforcement learning: rollouts, scoring, updates",
          .run = run_phases,
          .simulates = true};
}

}  // namespace manyworlds::farm::commands
