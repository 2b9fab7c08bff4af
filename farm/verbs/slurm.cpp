// `manyworlds slurm SPEC`: writes, and with --submit submits, batch scripts for a sweep.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "farm/cli/shared_words.hpp"
#include "farm/plan/frozen_job.hpp"
#include "farm/slurm/batch_scripts.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/other_program.hpp"
#include "farm/system/talk.hpp"
#include "farm/verbs/verbs.hpp"
#include "io/log/file.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm::commands {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kDefaultArraySize = 1001;  // Slurm's own default of MaxArraySize
constexpr std::uint32_t kLeastMargin_s = 20;

std::string absolute(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

std::uint32_t count_of(const cxxopts::ParseResult& parsed, const std::string& name, std::uint32_t most) {
  const auto count = parsed[name].as<std::int64_t>();
  if (count < 1 || count > most) throw core::InputError(fmt::format("--{} {}: it is from 1 to {}", name, count, most));
  return static_cast<std::uint32_t>(count);
}

constexpr const char* kDigits = "0123456789";
constexpr const char* kLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

/// A word as sbatch takes it, made of `characters`.
std::string word_of(const cxxopts::ParseResult& parsed, const std::string& name, const std::string& characters,
                    const std::string& right) {
  if (parsed.count(name) == 0) return "";
  const auto word = parsed[name].as<std::string>();
  if (word.find_first_not_of(characters) != std::string::npos)
    throw core::InputError(fmt::format("--{} {}: it takes {}", name, word, right));
  if (word.empty()) throw core::InputError(fmt::format("--{} is empty: it takes {}", name, right));
  return word;
}

/// Indices of an array are below MaxArraySize, and ours begin with 1.
std::uint32_t most_shards() {
  std::uint32_t size = kDefaultArraySize;
  if (const auto shown = run_other_program({"scontrol", "show", "config"}, Talk::unheard);
      shown && shown->exit_code == 0) {
    const auto at = shown->said.find("MaxArraySize");
    const auto equals = shown->said.find('=', at);
    if (at != std::string::npos && equals != std::string::npos)
      size = static_cast<std::uint32_t>(std::strtoul(shown->said.c_str() + equals + 1, nullptr, 10));
  }
  return size > 1 ? size - 1 : 0;
}

/// The CPUs that every node of the partition has.
std::uint32_t cpus_of_a_node(const std::string& partition) {
  std::vector<std::string> words{"sinfo", "-h", "-N", "-o", "%c"};
  if (!partition.empty()) words.insert(words.end(), {"-p", partition});
  unsigned long least = 0;
  if (const auto shown = run_other_program(words, Talk::unheard); shown && shown->exit_code == 0) {
    std::istringstream lines(shown->said);
    for (unsigned long cpus = 0; lines >> cpus;) least = least == 0 ? cpus : std::min(least, cpus);
  }
  if (least == 0) throw core::InputError("sinfo does not say how many CPUs a node has: give --tasks-per-node N");
  tell("{} tasks on a node, as many as it has CPUs\n", least);
  return static_cast<std::uint32_t>(least);
}

std::vector<std::string> command_line_of(const cxxopts::ParseResult& parsed, const SpecWords& spec,
                                         const std::string& program) {
  std::vector<std::string> words{program, "sweep", absolute(spec.spec)};
  if (parsed.count("srun") > 0) words.emplace_back("--srun");
  for (const std::string& set : spec.set) words.insert(words.end(), {"--set", set});
  if (!spec.catalog.empty()) words.insert(words.end(), {"--catalog", absolute(spec.catalog)});
  if (parsed.count("store") > 0) {
    const auto store = parsed["store"].as<std::string>();
    words.insert(words.end(), {"--store", store == "none" ? store : absolute(store)});
  }
  for (const char* name : {"task-memory", "task-time"})
    if (parsed.count(name) > 0) words.insert(words.end(), {std::string("--") + name, parsed[name].as<std::string>()});
  if (no_sharing(parsed)) words.emplace_back("--no-sharing");
  return words;
}

/// What would only be found out when the job runs.
void check_run_directory(const std::string& run, const std::string& frozen) {
  if (io::is_run_directory(run) && io::read_frozen_sweep(run) != frozen)
    throw core::InputError(fmt::format("{} holds a run of another sweep; give a new directory", run));
}

std::string submitted(const std::vector<std::string>& words) {
  const auto ended = run_other_program(words, Talk::heard);
  if (!ended) throw core::InputError("sbatch is not installed here; without --submit the scripts are only written");
  if (ended->exit_code != 0)
    throw core::InputError(fmt::format("sbatch refused {} (exit code {})", words.back(), ended->exit_code));
  return ended->said.substr(0, ended->said.find(';'));  // behind it a cluster's name
}

void submit(const BatchJob& job) {
  const std::string id = submitted({"sbatch", "--parsable", job.scripts + "/sweep.sh"});
  std::cout << id << "\n";
  if (job.shards == 0) {
    tell("job {} runs the sweep in {}\n", id, job.run);
    return;
  }
  const std::string merge =
      submitted({"sbatch", "--parsable", "--dependency=afterany:" + id, job.scripts + "/merge.sh"});
  std::cout << merge << "\n";
  tell("array {} computes {} shards, and then job {} joins them in {}\n", id, job.shards, merge, job.run);
}

void say_how_to_submit(const BatchJob& job) {
  const std::string sweep = core::shell_quoted(job.scripts + "/sweep.sh"),
                    merge = core::shell_quoted(job.scripts + "/merge.sh");
  if (job.shards == 0)
    std::cout << fmt::format("sbatch {}\n", sweep);
  else
    std::cout << fmt::format("sbatch --dependency=afterany:$(sbatch --parsable {}) {}\n", sweep, merge);
}

void add_options(cxxopts::Options& options) {
  const auto number = [] { return cxxopts::value<std::int64_t>(); };
  add_spec_words(options);
  options.add_options()("o,output", "the run directory; default: runs/NAME. The scripts go to RUN_DIR.slurm",
                        cxxopts::value<std::string>(), "RUN_DIR")("submit", "submit them; prints the ids of the jobs")(
      "nodes", "nodes of the job", number()->default_value("1"), "N")(
      "tasks-per-node", "ranks on each node; default: its CPUs", number(), "N")(
      "array", "instead of one job an array of N shards, each on one node, and a job that merges them", number(), "N")(
      "time", "time limit of a life of a job, as sbatch takes it; default: the partition's",
      cxxopts::value<std::string>(), "TIME")(
      "margin", "seconds before that limit at which it stops and asks for another life", number()->default_value("120"),
      "S")("partition", "as sbatch takes it", cxxopts::value<std::string>(), "P")("account", "as sbatch takes it",
                                                                                  cxxopts::value<std::string>(), "A")(
      "srun", "srun --mpi=pmix starts the ranks instead of mpirun");
  add_task_words(options);
}

}  // namespace

int run_slurm(const Invocation& invocation) {
  cxxopts::Options options("manyworlds slurm",
                           "Writes batch scripts for a sweep: one job, or an array of shards. A job that runs out of "
                           "time stops in good order, is queued again and goes on.");
  add_options(options);
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const SpecWords spec = spec_words(*parsed);
  const experiments::Sweep sweep = experiments::read_sweep(spec.spec, spec.set, spec.catalog);

  BatchJob job;
  job.name = sweep.name;
  job.run = absolute(run_directory_of(*parsed, sweep.name));
  job.scripts = job.run + ".slurm";
  job.program = fs::read_symlink("/proc/self/exe").string();
  job.command = command_line_of(*parsed, spec, job.program);
  job.time = word_of(*parsed, "time", std::string(kDigits) + ":-",
                     "minutes, HOURS:MINUTES:SECONDS or DAYS-HOURS, as sbatch does");
  job.partition = word_of(*parsed, "partition", std::string(kLetters) + ".,-", "names of partitions");
  job.account = word_of(*parsed, "account", std::string(kLetters) + ".-", "the name of an account");
  job.nodes = count_of(*parsed, "nodes", 1'000'000);
  job.margin_s = count_of(*parsed, "margin", 65'535);  // the most that sbatch --signal takes
  if (job.margin_s < kLeastMargin_s)
    throw core::InputError(
        fmt::format("--margin {}: what runs needs at least {} s to stop", job.margin_s, kLeastMargin_s));
  if (parsed->count("array") > 0) {
    if (parsed->count("nodes") > 0) throw core::InputError("--nodes with --array: each shard has one node");
    job.shards = count_of(*parsed, "array", most_shards());
  }
  check_run_directory(job.run, frozen_job(sweep, {!no_sharing(*parsed), {}}));
  job.tasks_per_node = parsed->count("tasks-per-node") > 0 ? count_of(*parsed, "tasks-per-node", 100'000)
                                                           : cpus_of_a_node(job.partition);

  io::make_private_directories(job.scripts);
  for (const BatchScript& script : batch_scripts(job)) {
    io::write_aside(fs::path(job.scripts) / script.name, script.text);
    tell("{}/{}\n", job.scripts, script.name);
  }
  if (parsed->count("submit") > 0)
    submit(job);
  else
    say_how_to_submit(job);
  return kExitDone;
}

}  // namespace manyworlds::farm::commands
