// The YAML file of `manyworlds allocate`: jobs that share a cluster, each with its speeds or the run that predicts
// them.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "farm/allocation/schedule.hpp"

namespace manyworlds::farm::allocation {

inline constexpr std::size_t kJobsLimit = 1'000, kPointsLimit = 256;

struct JobEntry {
  Job job;                     // its curve is empty as long as only `results` says it
  std::string results, where;  // a run directory or results file, and which of its experiments count; or ""
  std::int64_t least_gpus = 1, most_gpus = kGpusLimit;
  int line = 0;
};

struct JobsFile {
  std::string name;            // in messages
  std::vector<JobEntry> jobs;  // at least one; names are unique
  Nanoseconds restart = 0;
};

/// Parses `text`; a relative path of results starts from the folder of `name`. Throws core::InputError with file, line
/// and key.
JobsFile parse_jobs(std::string_view text, const std::string& name);

/// Takes the points with entry.least_gpus to entry.most_gpus as the entry's curve. Throws core::InputError with `file`
/// and line if there are none, or too many, or the request is not among them.
void set_curve(JobEntry& entry, std::vector<SpeedPoint> points, const std::string& file);

/// Returns the jobs, whose curves are known. Throws core::InputError with file and line for a job that cannot run, or
/// have what it requests, on `gpus` GPUs, and if they could take more than a century.
std::vector<Job> jobs_for(const JobsFile& file, std::int64_t gpus);

}  // namespace manyworlds::farm::allocation
