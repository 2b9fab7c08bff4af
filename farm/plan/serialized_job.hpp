// The text of a job, as stored in a run directory and read by a coordinating rank: the facts needed before the sweep is
// parsed, and the serialized sweep itself, under a checksum of both.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "experiments/sweep/experiment.hpp"
#include "farm/plan/shard.hpp"

namespace manyworlds::farm {

/// The options of a job.
struct JobOptions {
  bool share = true;  // experiments share their common sub-simulations
  Shard shard;        // the part of the sweep that the job computes
};

std::string serialize_job(const experiments::Sweep& sweep, const JobOptions& options);

struct SerializedJob {
  JobOptions options;
  std::string objective;   // of the sweep
  std::string_view sweep;  // a part of the parsed text, for experiments::deserialize()
};
/// Does not parse the sweep, which may be large. Throws InputError unless serialize_job() made `text`.
SerializedJob parse_job(std::string_view text);

/// Returns the text in a run directory, for parse_job(). Throws InputError, naming the file, if it is damaged, and like
/// io::read_serialized_sweep().
std::string read_serialized_job(const std::filesystem::path& run_directory);

/// Returns the experiment of a run with this id. Throws InputError where the run has none, and like
/// read_serialized_job().
experiments::Experiment experiment_of_run(const std::filesystem::path& run_directory, std::int64_t id);

/// Returns the text of the same job for the whole sweep.
std::string unsharded_job(const SerializedJob& job);

}  // namespace manyworlds::farm
