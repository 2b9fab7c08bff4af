// `manyworlds explain SPEC`: every rule that a layout violates, or what each of its settings costs, or what better
// hardware would bring. `manyworlds explain RUN`: why the best of a sweep are its best.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "core/base/error.hpp"
#include "farm/cli/options/one_experiment.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/explain/explained_best.hpp"
#include "farm/explain/explained_layout.hpp"
#include "farm/explain/hardware_sensitivity.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/run/supervisor.hpp"
#include "farm/sweep/single_experiment.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/run_directory.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::commands {
namespace {

using Json = nlohmann::ordered_json;

/// Draws the number of finished simulations while it lives.
class Progress {
 public:
  ~Progress() { line_.clear(); }
  TaskProgress draw() {
    return [this](std::size_t done, std::size_t all) { line_.draw(fmt::format("{} of {} simulations", done, all)); };
  }

 private:
  ProgressLine line_;
};

Sensitivity simulated_sensitivity(const experiments::Experiment& layout) {
  Sensitivity result = hardware_sensitivity(layout);
  Progress progress;
  result.results = simulate_here(result.sweep, progress.draw());
  return result;
}

void print_json(const Json& json) {
  std::cout << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

/// Explains the only experiment of a sweep; `refused` if rules exclude it.
int explain_one(const experiments::Sweep& sweep, bool sensitivity, bool json) {
  Explained explained = explain((sweep.experiments.empty() ? sweep.refused : sweep.experiments).front());
  if (sensitivity && explained.violations.broken.empty()) {
    const Sensitivity found = simulated_sensitivity(explained.layout);
    if (json) {
      print_json({{"name", sweep.name}, {"refused", false}, {"sensitivity", sensitivity_json(found)}});
      return kExitDone;
    }
    std::cout << layout_text(explained.layout, found.results, sweep.name) << sensitivity_text(found)
              << io::assumed_text(sweep.assumed);
    return kExitDone;
  }
  if (explained.violations.broken.empty()) {
    Progress progress;
    run_variants(explained, progress.draw());
  }
  if (json)
    print_json(explained_json(explained, sweep.name));
  else
    std::cout << explained_text(explained, sweep.name) << io::assumed_text(sweep.assumed);
  return kExitDone;
}

/// Returns the sweep of a run directory; nullopt for a results file alone, which has no settings.
std::optional<experiments::Sweep> sweep_of_run(const std::string& run) {
  if (!io::is_run_directory(run)) return std::nullopt;
  const std::string text = read_serialized_job(run);
  return experiments::deserialize(parse_job(text).sweep);
}

bool is_run(const std::string& path) {
  return std::filesystem::is_directory(path) || std::filesystem::path(path).extension() == ".h5";
}

int explain_run(const cxxopts::ParseResult& parsed, const std::string& run) {
  for (const char* option : {"set", "assume", "catalog"})
    if (parsed.count(option) > 0)
      throw core::InputError(fmt::format("changes a SPEC, and {} is a run: its experiments are as they were", run),
                             fmt::format("--{}", option));
  const bool json = parsed.count("json") > 0, sensitivity = parsed.count("sensitivity") > 0;
  const std::optional<experiments::Sweep> sweep = sweep_of_run(run);
  if (!sweep && (sensitivity || parsed.count("experiment") > 0))
    throw core::InputError("a results file has no settings to simulate; give the run's directory", run);
  if (parsed.count("experiment") > 0)
    return explain_one(single_experiment(*sweep, parsed["experiment"].as<std::int64_t>(), run), sensitivity, json);
  const io::Results results = io::read_results(io::results_path(run));
  ExplainedBest explained = explain_best(results, sweep ? &*sweep : nullptr, run);
  std::optional<Sensitivity> found;
  if (sensitivity) {
    found = simulated_sensitivity(explained.winner.value().experiment);
    Progress progress;
    explained.memory = look_at_more_memory(explained, *sweep, progress.draw());
  }
  if (json) {
    Json all = best_explained_json(explained, run);
    if (found) all["sensitivity"] = sensitivity_json(*found);
    print_json(all);
    return kExitDone;
  }
  std::cout << best_explained_text(explained, run) << (found ? sensitivity_text(*found) : "")
            << io::assumed_text(io::assumed_defaults(results));
  return kExitDone;
}

int run_explain(const Invocation& invocation) {
  cxxopts::Options options("manyworlds explain",
                           "Why a layout is refused: every rule it breaks, and who says so. Or what each key of its "
                           "strategy costs: what changes if that key alone goes back to its default. Of a run that "
                           "asked for its best: what proves them, what binds the first, and how near its bound is.");
  add_experiment_options(options);
  options.add_options()("sensitivity",
                        "what hardware that is 10 % better would bring to the layout, or to the best of a run, one "
                        "figure after the other, each simulated")("json", "the same, as JSON");
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml|RUN");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::string spec = required(*parsed, "spec");
  if (is_run(spec)) return explain_run(*parsed, spec);
  return explain_one(one_experiment(*parsed, {.keep_refused = true}), parsed->count("sensitivity") > 0,
                     parsed->count("json") > 0);
}

}  // namespace

Command explain_command() {
  return {.name = "explain",
          .summary = "why a layout is refused or the best are the best, and what each key costs",
          .run = run_explain};
}

}  // namespace manyworlds::farm::commands
