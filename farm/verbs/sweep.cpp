// `manyworlds sweep SPEC`: runs every world of a sweep in a run directory and ranks them.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "core/base/error.hpp"
#include "farm/cli/shared_words.hpp"
#include "farm/plan/frozen_job.hpp"
#include "farm/results/sweep_report.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/processors.hpp"
#include "farm/verbs/verbs.hpp"

namespace manyworlds::farm::commands {

namespace {

int dry_run(const experiments::Sweep& sweep, const Shard& shard, bool json) {
  const Forecast made = forecast(sweep, shard);
  if (json)
    std::cout << dry_run_json(sweep, made).dump(1) << "\n";
  else
    std::cout << dry_run_text(sweep, made);
  return kExitDone;
}

}  // namespace

int run_sweep(const Invocation& invocation) {
  cxxopts::Options options("manyworlds sweep", "Runs every world of a sweep and ranks them.");
  add_spec_words(options);
  add_run_words(options);
  add_serve_words(options);
  options.add_options()("o,output", "the run directory; default: runs/NAME", cxxopts::value<std::string>(), "RUN_DIR")(
      "shard", "only the I-th of N parts, which `manyworlds merge` joins; default RUN_DIR: runs/NAME.shards/I-of-N",
      cxxopts::value<std::string>(),
      "I/N")("dry-run", "say what would be run and what is left out, and run nothing")("json", "JSON output");
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const bool json = parsed->count("json") > 0;
  if (parsed->count("dry-run") > 0 && parsed->count("serve") > 0)
    throw core::InputError("there is nothing to watch under --dry-run: leave one of them out", "--serve");
  const SpecWords words = spec_words(*parsed);
  if (is_follower() && parsed->count("in-process") == 0)
    return run_sweep_job(run_words(*parsed, ""), "", json, *invocation.zygote);

  std::optional<experiments::Sweep> sweep = experiments::read_sweep(words.spec, words.set, words.catalog);
  const Shard shard = parsed->count("shard") > 0 ? parse_shard(required(*parsed, "shard")) : Shard{};
  if (parsed->count("dry-run") > 0) {
    rank_count(run_words(*parsed, "").ranks);
    return dry_run(*sweep, shard, json);
  }
  std::string directory = run_directory_of(*parsed, sweep->name);
  if (parsed->count("output") == 0) directory = shard_directory(directory, shard);
  RunOptions run = run_words(*parsed, directory);
  take_serve_words(*parsed, run);
  check_before_work(run);
  const std::string frozen = frozen_job(*sweep, {!no_sharing(*parsed), shard});
  sweep.reset();  // a large one takes gigabytes, and whoever coordinates makes its own
  return_freed_memory();
  return run_sweep_job(run, frozen, json, *invocation.zygote);
}

}  // namespace manyworlds::farm::commands
