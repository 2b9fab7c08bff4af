#include "farm/cli/options/shared_options.hpp"

#include <fmt/ranges.h>

#include <map>
#include <set>

#include "core/base/error.hpp"
#include "experiments/analysis/guesses.hpp"
#include "farm/cli/options/thread_options.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/system/console.hpp"
#include "farm/system/host_resources.hpp"

namespace manyworlds::farm::commands {

void add_spec_options(cxxopts::Options& options) {
  options.add_options()("spec", "the sweep or experiment, a YAML file", cxxopts::value<std::string>(), "SPEC.yaml")(
      "set", "override a key of `base`; may be given many times", cxxopts::value<std::vector<std::string>>(),
      "KEY=VALUE")("catalog", "a folder or file with more gpus, libraries, models, clusters and stacks",
                   cxxopts::value<std::string>()->default_value(""), "DIR");
  add_assume_option(options);
}

void add_assume_option(cxxopts::Options& options) {
  options.add_options()("assume",
                        "defaults for settings that are not given: today's practice, or the plain defaults of 2021",
                        cxxopts::value<std::string>(), "today|2021");
}

void apply_assume_option(const cxxopts::ParseResult& parsed, std::vector<std::string>& set) {
  if (parsed.count("assume") > 0) set.insert(set.begin(), "assume=" + parsed["assume"].as<std::string>());
}

SpecOptions read_spec_options(const cxxopts::ParseResult& parsed) {
  SpecOptions spec_options;
  spec_options.spec = required(parsed, "spec");
  spec_options.catalog = parsed["catalog"].as<std::string>();
  if (parsed.count("set") > 0) spec_options.set = parsed["set"].as<std::vector<std::string>>();
  apply_assume_option(parsed, spec_options.set);
  for (const auto& set : spec_options.set)
    if (const auto equals = set.find('='); equals == 0 || equals == std::string::npos)
      throw core::InputError(fmt::format("--set {}: it takes KEY=VALUE, as in --set strategy.tp=8", set));
  return spec_options;
}

void add_guess_option(cxxopts::Options& options) {
  options.add_options()("no-guesses", "refuse what would rest on a figure that the catalog calls a guess");
}

void refuse_guesses(const cxxopts::ParseResult& parsed, const experiments::Sweep& sweep) {
  if (parsed.count("no-guesses") > 0)
    refuse_guesses(parsed, sweep, experiments::Catalog(parsed["catalog"].as<std::string>()));
}

void refuse_guesses(const cxxopts::ParseResult& parsed, const experiments::Sweep& sweep,
                    const experiments::Catalog& catalog) {
  if (parsed.count("no-guesses") == 0) return;
  std::map<std::string, std::set<std::string>> named;  // figures by the catalog's file
  for (const experiments::Experiment& one : sweep.experiments)
    for (const auto& guess : experiments::guesses_in_use(one.settings, one.config(), catalog))
      named[guess.file].insert(guess.key + " " + experiments::figure_text(guess.value, guess.range));
  if (named.empty()) return;
  std::size_t guesses = 0;
  for (const auto& [file, figures] : named) {
    print_message("{}:\n", file);
    for (const std::string& figure : figures) print_message("  {}\n", figure);
    guesses += figures.size();
  }
  throw core::InputError(fmt::format("the answer would rest on these {} guesses of the catalog; give figures of your "
                                     "own with --set KEY=VALUE, or leave the option out",
                                     guesses),
                         "--no-guesses");
}

std::string default_store_limit() {
  return fmt::format("{}GiB", RunOptions().store_limit_bytes >> 30);
}

std::string run_directory_of(const cxxopts::ParseResult& parsed, const std::string& name) {
  if (parsed.count("output") > 0) return required(parsed, "output");
  if (name.find('/') != std::string::npos || name == "." || name == "..")
    throw core::InputError(fmt::format("a sweep called '{}' makes no folder name; give one with -o", name));
  return "runs/" + name;
}

void add_task_options(cxxopts::Options& options) {
  options.add_options()("store", "where results are kept between runs: a folder, whose writers you must trust, or none",
                        cxxopts::value<std::string>()->default_value(""), "DIR|none")(
      "task-memory", "what one simulation may take of memory; default: an even share of the machine's; 0: no limit",
      cxxopts::value<std::string>(), "SIZE")("task-time", "how long one simulation may take, as in 30m; 0: no limit",
                                             cxxopts::value<std::string>()->default_value("6h"), "DURATION")(
      "no-sharing", "every experiment computes everything itself, without a store; same results, slower");
}

void add_run_options(cxxopts::Options& options) {
  options.add_options()("j,ranks", "how many ranks; default: the CPUs at hand, in Slurm the tasks of the job",
                        cxxopts::value<int>(), "N")(
      "threads",
      "with how many threads each rank simulates packets; default: the CPUs of a task of Slurm, else 1; same "
      "results",
      cxxopts::value<int>(), "N")("in-process", "without mpirun: the workers are children of this process")(
      "srun", "srun --mpi=pmix starts the ranks instead of mpirun: in a Slurm job")(
      "store-limit", "how much the store may hold when the run ends; what was used last stays",
      cxxopts::value<std::string>()->default_value(default_store_limit()),
      "SIZE")("stop-after", "stop after this time, to be resumed", cxxopts::value<std::string>(), "DURATION")(
      "start-time", "how long the ranks may take to find each other; default: 1m, in a batch job 5m",
      cxxopts::value<std::string>(),
      "DURATION")("rebuild", "take over a run directory that another build began: what that one computed is dropped");
  add_task_options(options);
}

void add_serve_options(cxxopts::Options& options) {
  options.add_options()(
      "serve", "a live page while it runs: at a port of this machine alone, or at HOST:PORT for whoever has the token",
      cxxopts::value<std::string>(), "[HOST:]PORT");
}

void apply_serve_options(const cxxopts::ParseResult& parsed, RunOptions& options) {
  if (parsed.count("serve") > 0) options.serve = serve::parse_address(required(parsed, "serve"), "--serve");
}

bool no_sharing(const cxxopts::ParseResult& parsed) {
  return parsed.count("no-sharing") > 0;
}

RunOptions read_run_options(const cxxopts::ParseResult& parsed, const std::string& directory) {
  RunOptions options;
  options.directory = directory;
  if (parsed.count("ranks") > 0) options.ranks = parsed["ranks"].as<int>();
  options.threads = given_threads(parsed);
  options.in_process = parsed.count("in-process") > 0;
  options.srun = parsed.count("srun") > 0;
  options.store = no_sharing(parsed) ? "none" : parsed["store"].as<std::string>();
  options.store_limit_bytes =
      static_cast<std::uint64_t>(parse_size(parsed["store-limit"].as<std::string>(), "--store-limit"));
  if (parsed.count("task-memory") > 0)
    options.task_memory_bytes = parse_size(parsed["task-memory"].as<std::string>(), "--task-memory");
  options.task_time = parse_duration(parsed["task-time"].as<std::string>(), "--task-time");
  if (parsed.count("stop-after") > 0)
    options.drain_after = parse_duration(parsed["stop-after"].as<std::string>(), "--stop-after");
  // Many nodes start slowly from a shared file system.
  if (!batch_job_id().empty()) options.start_time = std::chrono::minutes(5);
  if (parsed.count("start-time") > 0)
    options.start_time = parse_duration(parsed["start-time"].as<std::string>(), "--start-time");
  if (options.start_time.count() < 1'000)
    throw core::InputError("--start-time: ranks need a second at least to find each other");
  options.rebuild = parsed.count("rebuild") > 0;
  return options;
}

}  // namespace manyworlds::farm::commands
