// `manyworlds sweep SPEC`: runs every experiment of a sweep in a run directory and ranks them.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/sweep/space.hpp"
#include "experiments/text/text.hpp"
#include "farm/cli/options/best_options.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/effort/compute_alone.hpp"
#include "farm/effort/dry_run.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/host_resources.hpp"
#include "farm/worker/task_limits.hpp"

namespace manyworlds::farm::commands {

namespace {

/// Simulates some steps of the sweep, in processes of their own, for `seconds`.
std::optional<Pilot> pilot_of(const experiments::Sweep& sweep, const Shard& shard, const RunOptions& run,
                              std::chrono::seconds seconds, Zygote& zygote) {
  const SweepJob job(serialize_job(sweep, {.share = true, .shard = shard}));
  const std::uint64_t memory_bytes = run.task_memory_bytes.value_or(memory_share_bytes(1));
  return run_pilot(job, in_new_processes(job, memory_bytes, zygote), seconds);
}

int dry_run(const experiments::Sweep& sweep, const Shard& shard, const cxxopts::ParseResult& parsed, Zygote& zygote) {
  const RunOptions run = read_run_options(parsed, "");
  Forecast estimate = forecast(sweep, shard);
  if (parsed.count("estimate") > 0)
    estimate.pilot =
        pilot_of(sweep, shard, run, parse_duration(parsed["estimate"].as<std::string>(), "--estimate"), zygote);
  if (parsed.count("json") > 0)
    std::cout << dry_run_json(sweep, estimate).dump(1) << "\n";
  else
    std::cout << dry_run_text(sweep, estimate, rank_count(run.ranks).ranks);
  return kExitDone;
}

/// Reads the sweep; of a space that is too large to be listed, of which the best are asked for, only the points with
/// the best lower bounds.
experiments::Sweep read_sweep_or_best(const SpecOptions& options, const cxxopts::ParseResult& parsed) {
  const std::string text = experiments::import::read_text(options.spec);
  const experiments::Catalog catalog(options.catalog);
  experiments::Space space(text, options.spec, options.set, catalog);
  experiments::Sweep asked = space.sweep();
  ask_for_best(parsed, asked);
  space.ask_for_best(asked);
  return list_space(std::move(space), options.spec).sweep;
}

int run_sweep(const Invocation& invocation) {
  cxxopts::Options options("manyworlds sweep", "Runs every experiment of a sweep and ranks them.");
  add_spec_options(options);
  add_guess_option(options);
  add_run_options(options);
  add_serve_options(options);
  add_best_options(
      options, "simulate only what may be among the K best by its lower bound, and prove that these are the best",
      "with --best or --front: end once no other can be better than the last of these, or than what dominates it but "
      "for that, by more than so much, as in 2%");
  options.add_options()("o,output", "the run directory; default: runs/NAME", cxxopts::value<std::string>(), "RUN_DIR")(
      "shard", "only the I-th of N parts, which `manyworlds merge` joins; default RUN_DIR: runs/NAME.shards/I-of-N",
      cxxopts::value<std::string>(), "I/N")("dry-run", "print what would be run and what is excluded, and run nothing")(
      "front",
      "simulate only what may be on the Pareto front of the objective against COLUMN (memory_peak_bytes, gpus, "
      "strategy.global_batch, or an objective), or with --best what fewer than K others dominate, and prove it",
      cxxopts::value<std::string>(), "COLUMN")(
      "estimate",
      "with --dry-run: simulate some drawn steps for so long, and tell what the sweep will take; default without a "
      "value: 10s",
      cxxopts::value<std::string>(), "DURATION")("json", "JSON output");
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const bool json = parsed->count("json") > 0;
  if (parsed->count("dry-run") > 0 && parsed->count("serve") > 0)
    throw core::InputError("there is nothing to watch under --dry-run: leave one of them out", "--serve");
  if (parsed->count("estimate") > 0 && parsed->count("dry-run") == 0)
    throw core::InputError("is for a sweep that does not run: add --dry-run", "--estimate");
  const SpecOptions spec_options = read_spec_options(*parsed);
  if (is_follower() && parsed->count("in-process") == 0)
    return run_sweep_job(read_run_options(*parsed, ""), "", json, *invocation.zygote);

  std::optional<experiments::Sweep> sweep = read_sweep_or_best(spec_options, *parsed);
  refuse_guesses(*parsed, *sweep);
  const Shard shard = parsed->count("shard") > 0 ? parse_shard(required(*parsed, "shard")) : Shard{};
  if (sweep->best > 0 && !shard.whole())
    throw core::InputError(fmt::format("the {} of a sweep {} proven by all of it: run it in one part, on as many ranks",
                                       sweep->front.empty() ? "best" : "front", sweep->front.empty() ? "are" : "is"),
                           "--shard");
  if (parsed->count("dry-run") > 0) return dry_run(*sweep, shard, *parsed, *invocation.zygote);
  std::string directory = run_directory_of(*parsed, sweep->name);
  if (parsed->count("output") == 0) directory = shard_directory(directory, shard);
  RunOptions run = read_run_options(*parsed, directory);
  apply_serve_options(*parsed, run);
  check_preconditions(run);
  const std::string serialized = serialize_job(*sweep, {!no_sharing(*parsed), shard});
  sweep.reset();  // a large sweep takes gigabytes, and the coordinating process builds its own
  return_freed_memory();
  return run_sweep_job(run, serialized, json, *invocation.zygote);
}

}  // namespace

Command sweep_command() {
  return {.name = "sweep",
          .summary = "runs every experiment of a sweep and ranks them",
          .run = run_sweep,
          .simulates = true};
}

}  // namespace manyworlds::farm::commands
