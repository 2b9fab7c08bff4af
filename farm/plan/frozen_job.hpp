// The text of a job, as a run directory keeps it and a coordinating rank reads it: what one has to know of a sweep
// before reading it, and the frozen sweep itself, under a checksum of both.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "experiments/sweep/experiment.hpp"
#include "farm/plan/shard.hpp"

namespace manyworlds::farm {

/// How a job goes about its sweep.
struct JobTerms {
  bool share = true;  // its experiments share what they have in common
  Shard shard;        // the part of the sweep that it computes
};

std::string frozen_job(const experiments::Sweep& sweep, const JobTerms& terms);

struct FrozenJob {
  JobTerms terms;
  std::string objective;   // of the sweep
  std::string_view sweep;  // inside the text, for experiments::thaw()
};
/// Parses nothing of the sweep, which may be large. Throws InputError unless `text` is what frozen_job() made.
FrozenJob open_job(std::string_view text);

/// The text in a run directory, which open_job() takes. Throws InputError, naming the file, where it is damaged, and as
/// io::read_frozen_sweep() does.
std::string read_job(const std::filesystem::path& run_directory);

/// The text of the same job for the whole sweep.
std::string whole_job(const FrozenJob& job);

}  // namespace manyworlds::farm
