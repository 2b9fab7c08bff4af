// `manyworlds allocate JOBS.yaml --gpus N`: the GPUs of a cluster among training jobs, by how fast these are on how
// many.
#include <fmt/format.h>

#include <iostream>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"
#include "farm/allocation/allocation_report.hpp"
#include "farm/allocation/jobs_file.hpp"
#include "farm/allocation/predicted_speeds.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/run_directory.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::commands {

namespace {

/// Reads the results that an entry names, and takes its speeds from there.
void add_predicted_speeds(allocation::JobEntry& entry, const std::string& file) {
  try {
    const std::string path = io::results_path(entry.results).string();
    allocation::set_curve(entry, allocation::predicted_speeds(io::read_results(path), entry.where, path), file);
  } catch (const core::InputError& error) {
    if (error.located()) throw;
    throw core::InputError(fmt::format("job '{}': {}", entry.job.name, error.what()), file, entry.line);
  }
}

int run_allocate(const Invocation& invocation) {
  cxxopts::Options options(
      "manyworlds allocate",
      "The GPUs of a cluster among training jobs, by marginal gain (Optimus, EuroSys 2018), and how "
      "long the jobs take then and under FIFO and DRF.");
  options.add_options()("jobs", "a YAML file of jobs: docs/decisions.md", cxxopts::value<std::string>())(
      "gpus", "of the cluster", cxxopts::value<std::int64_t>(), "N")("json",
                                                                     "the schedules, times in seconds, as JSON");
  options.parse_positional({"jobs"});
  options.positional_help("JOBS.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::string path = required(*parsed, "jobs");
  if (parsed->count("gpus") == 0)
    throw core::InputError("is missing: the GPUs of the cluster, as in --gpus 64", "--gpus");
  const std::int64_t gpus = (*parsed)["gpus"].as<std::int64_t>();
  if (gpus < 1 || gpus > allocation::kGpusLimit)
    throw core::InputError(fmt::format("must be from 1 to {}, not {}", allocation::kGpusLimit, gpus), "--gpus");
  allocation::JobsFile file = allocation::parse_jobs(experiments::import::read_text(path), path);
  std::vector<std::string> sources;
  for (allocation::JobEntry& entry : file.jobs) {
    if (!entry.results.empty()) add_predicted_speeds(entry, path);
    sources.push_back(entry.results);
  }
  const auto report = allocation::allocate(jobs_for(file, gpus), std::move(sources), {gpus, file.restart});
  std::cout << (parsed->count("json") > 0 ? report.json() : report.text());
  return kExitDone;
}

}  // namespace

Command allocate_command() {
  return {.name = "allocate", .summary = "the GPUs of a cluster among training jobs", .run = run_allocate};
}

}  // namespace manyworlds::farm::commands
