// `manyworlds explain SPEC`: every rule that a layout violates, or what each of its settings costs.
#include <fmt/format.h>

#include <iostream>

#include "farm/cli/command.hpp"
#include "farm/cli/one_experiment.hpp"
#include "farm/results/explained_layout.hpp"
#include "farm/run/supervisor.hpp"
#include "farm/system/exit_code.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::commands {
namespace {

int run_explain(const Invocation& invocation) {
  cxxopts::Options options("manyworlds explain",
                           "Why a layout is refused: every rule it breaks, and who says so. Or what each key of its "
                           "strategy costs: what changes if that key alone goes back to its default.");
  add_experiment_options(options);
  options.add_options()("json", "the same, as JSON");
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const experiments::Sweep sweep = one_experiment(*parsed, {.keep_refused = true});
  Explained explained = explain((sweep.experiments.empty() ? sweep.refused : sweep.experiments).front());
  if (explained.violations.broken.empty()) {
    ProgressLine line;
    run_variants(explained,
                 [&](std::size_t done, std::size_t all) { line.draw(fmt::format("{} of {} simulations", done, all)); });
    line.clear();
  }
  std::cout << (parsed->count("json") > 0 ? explained_json(explained, sweep.name).dump(1) + "\n"
                                          : explained_text(explained, sweep.name) + io::assumed_text(sweep.assumed));
  return kExitDone;
}

}  // namespace

Command explain_command() {
  return {.name = "explain", .summary = "why a layout is refused, or what each of its keys costs", .run = run_explain};
}

}  // namespace manyworlds::farm::commands
