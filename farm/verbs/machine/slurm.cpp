// `manyworlds slurm SPEC`: writes, and with --submit submits, batch scripts for a sweep.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/slurm/batch_scripts.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/external_program.hpp"
#include "io/log/file.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm::commands {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kDefaultArraySize = 1001;  // Slurm's default for MaxArraySize
constexpr std::uint32_t kMinMargin_s = 20;

std::string absolute(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

std::uint32_t count_of(const cxxopts::ParseResult& parsed, const std::string& name, std::uint32_t max_count) {
  const auto count = parsed[name].as<std::int64_t>();
  if (count < 1 || count > max_count)
    throw core::InputError(fmt::format("--{} {}: it is from 1 to {}", name, count, max_count));
  return static_cast<std::uint32_t>(count);
}

constexpr const char* kDigits = "0123456789";
constexpr const char* kLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

/// Returns the value of an option for sbatch, which must consist of `characters`.
std::string text_option(const cxxopts::ParseResult& parsed, const std::string& name, const std::string& characters,
                        const std::string& expected) {
  if (parsed.count(name) == 0) return "";
  const auto value = parsed[name].as<std::string>();
  if (value.find_first_not_of(characters) != std::string::npos)
    throw core::InputError(fmt::format("--{} {}: it takes {}", name, value, expected));
  if (value.empty()) throw core::InputError(fmt::format("--{} is empty: it takes {}", name, expected));
  return value;
}

/// Returns the maximum number of shards: array indices must be below MaxArraySize, and ours start at 1.
std::uint32_t max_shards() {
  std::uint32_t size = kDefaultArraySize;
  if (const auto result = run_external_program({"scontrol", "show", "config"}, StandardError::discarded);
      result && result->exit_code == 0) {
    const auto at = result->output.find("MaxArraySize");
    const auto equals = result->output.find('=', at);
    if (at != std::string::npos && equals != std::string::npos)
      size = static_cast<std::uint32_t>(std::strtoul(result->output.c_str() + equals + 1, nullptr, 10));
  }
  return size > 1 ? size - 1 : 0;
}

/// Returns how many tasks of so many CPUs every node of the partition has room for; at least one.
std::uint32_t tasks_on_node(const std::string& partition, std::uint32_t threads) {
  std::vector<std::string> command{"sinfo", "-h", "-N", "-o", "%c"};
  if (!partition.empty()) command.insert(command.end(), {"-p", partition});
  unsigned long min_cpus = 0;
  if (const auto result = run_external_program(command, StandardError::discarded); result && result->exit_code == 0) {
    std::istringstream lines(result->output);
    for (unsigned long cpus = 0; lines >> cpus;) min_cpus = min_cpus == 0 ? cpus : std::min(min_cpus, cpus);
  }
  if (min_cpus == 0) throw core::InputError("sinfo does not say how many CPUs a node has: give --tasks-per-node N");
  const auto tasks = std::max<std::uint32_t>(static_cast<std::uint32_t>(min_cpus) / threads, 1);
  print_message("{} tasks on a node, as many as it has CPUs{}\n", tasks,
                threads > 1 ? fmt::format(" for, {} each", threads) : "");
  return tasks;
}

std::vector<std::string> sweep_command(const cxxopts::ParseResult& parsed, const SpecOptions& spec,
                                       std::uint32_t threads, const std::string& program) {
  std::vector<std::string> command{program, "sweep", absolute(spec.spec)};
  if (parsed.count("srun") > 0) command.emplace_back("--srun");
  if (parsed.count("threads") > 0) command.insert(command.end(), {"--threads", std::to_string(threads)});
  for (const std::string& set : spec.set) command.insert(command.end(), {"--set", set});
  if (!spec.catalog.empty()) command.insert(command.end(), {"--catalog", absolute(spec.catalog)});
  if (parsed.count("store") > 0) {
    const auto store = parsed["store"].as<std::string>();
    command.insert(command.end(), {"--store", store == "none" ? store : absolute(store)});
  }
  for (const char* name : {"task-memory", "task-time"})
    if (parsed.count(name) > 0)
      command.insert(command.end(), {std::string("--") + name, parsed[name].as<std::string>()});
  if (no_sharing(parsed)) command.emplace_back("--no-sharing");
  return command;
}

/// Detects now an error that would otherwise appear only when the job runs.
void check_run_directory(const std::string& run, const std::string& serialized) {
  if (io::is_run_directory(run) && io::read_serialized_sweep(run) != serialized)
    throw core::InputError(fmt::format("{} holds a run of another sweep; give a new directory", run));
}

std::string submit_script(const std::vector<std::string>& command) {
  const auto result = run_external_program(command, StandardError::passed_through);
  if (!result) throw core::InputError("sbatch is not installed here; without --submit the scripts are only written");
  if (result->exit_code != 0)
    throw core::InputError(fmt::format("sbatch refused {} (exit code {})", command.back(), result->exit_code));
  return result->output.substr(0, result->output.find(';'));  // the name of a cluster may follow
}

void submit(const BatchJob& job) {
  const std::string id = submit_script({"sbatch", "--parsable", job.scripts + "/sweep.sh"});
  std::cout << id << "\n";
  if (job.shards == 0) {
    print_message("job {} runs the sweep in {}\n", id, job.run);
    return;
  }
  const std::string merge =
      submit_script({"sbatch", "--parsable", "--dependency=afterany:" + id, job.scripts + "/merge.sh"});
  std::cout << merge << "\n";
  print_message("array {} computes {} shards, and then job {} joins them in {}\n", id, job.shards, merge, job.run);
}

void print_submit_command(const BatchJob& job) {
  const std::string sweep = core::shell_quoted(job.scripts + "/sweep.sh"),
                    merge = core::shell_quoted(job.scripts + "/merge.sh");
  if (job.shards == 0)
    std::cout << fmt::format("sbatch {}\n", sweep);
  else
    std::cout << fmt::format("sbatch --dependency=afterany:$(sbatch --parsable {}) {}\n", sweep, merge);
}

void add_options(cxxopts::Options& options) {
  const auto number = [] { return cxxopts::value<std::int64_t>(); };
  add_spec_options(options);
  options.add_options()("o,output", "the run directory; default: runs/NAME. The scripts go to RUN_DIR.slurm",
                        cxxopts::value<std::string>(), "RUN_DIR")("submit", "submit them; prints the ids of the jobs")(
      "nodes", "nodes of the job", number()->default_value("1"), "N")(
      "tasks-per-node", "ranks on each node; default: its CPUs over those of a rank", number(), "N")(
      "threads", "CPUs of each rank, with which it simulates packets", number()->default_value("1"), "N")(
      "array", "instead of one job an array of N shards, each on one node, and a job that merges them", number(), "N")(
      "time", "time limit of a job, as sbatch takes it; default: the partition's", cxxopts::value<std::string>(),
      "TIME")("margin", "seconds before that limit at which it stops and requeues itself",
              number()->default_value("120"),
              "S")("partition", "as sbatch takes it", cxxopts::value<std::string>(), "P")(
      "account", "as sbatch takes it", cxxopts::value<std::string>(), "A")(
      "srun", "srun --mpi=pmix starts the ranks instead of mpirun");
  add_task_options(options);
}

int run_slurm(const Invocation& invocation) {
  cxxopts::Options options("manyworlds slurm",
                           "Writes batch scripts for a sweep: one job, or an array of shards. A job that runs out of "
                           "time stops in good order, is queued again and goes on.");
  add_options(options);
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const SpecOptions spec = read_spec_options(*parsed);
  const experiments::Sweep sweep = experiments::read_sweep(spec.spec, spec.set, spec.catalog);

  BatchJob job;
  job.name = sweep.name;
  job.run = absolute(run_directory_of(*parsed, sweep.name));
  job.scripts = job.run + ".slurm";
  job.program = fs::read_symlink("/proc/self/exe").string();
  job.threads = count_of(*parsed, "threads", 1'024);
  job.command = sweep_command(*parsed, spec, job.threads, job.program);
  job.time = text_option(*parsed, "time", std::string(kDigits) + ":-",
                         "minutes, HOURS:MINUTES:SECONDS or DAYS-HOURS, as sbatch does");
  job.partition = text_option(*parsed, "partition", std::string(kLetters) + ".,-", "names of partitions");
  job.account = text_option(*parsed, "account", std::string(kLetters) + ".-", "the name of an account");
  job.nodes = count_of(*parsed, "nodes", 1'000'000);
  job.margin_s = count_of(*parsed, "margin", 65'535);  // the maximum of sbatch --signal
  if (job.margin_s < kMinMargin_s)
    throw core::InputError(
        fmt::format("--margin {}: what runs needs at least {} s to stop", job.margin_s, kMinMargin_s));
  if (parsed->count("array") > 0) {
    if (parsed->count("nodes") > 0) throw core::InputError("--nodes with --array: each shard has one node");
    job.shards = count_of(*parsed, "array", max_shards());
  }
  check_run_directory(job.run, serialize_job(sweep, {!no_sharing(*parsed), {}}));
  job.tasks_per_node = parsed->count("tasks-per-node") > 0 ? count_of(*parsed, "tasks-per-node", 100'000)
                                                           : tasks_on_node(job.partition, job.threads);

  io::make_private_directories(job.scripts);
  for (const BatchScript& script : batch_scripts(job)) {
    io::write_atomically(fs::path(job.scripts) / script.name, script.text);
    print_message("{}/{}\n", job.scripts, script.name);
  }
  if (parsed->count("submit") > 0)
    submit(job);
  else
    print_submit_command(job);
  return kExitDone;
}

}  // namespace

Command slurm_command() {
  return {.name = "slurm", .summary = "batch scripts for a sweep", .run = run_slurm};
}

}  // namespace manyworlds::farm::commands
