// An experiment as what a framework is launched with: the way back from settings.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/settings_map.hpp"
#include "experiments/jobs/job.hpp"

namespace manyworlds::experiments::jobs {

struct EmittedJob {
  std::string text;                // a file, or the lines of a command, with comments where the job of --like differs
  std::vector<std::string> notes;  // what the framework cannot express, one line each
};

/// Returns what launches an experiment, whose settings have every default filled in. `like` is the job that it was made
/// from; null if there is none. Throws InputError if the framework cannot run it at all.
using EmitJob = EmittedJob (*)(const Settings& experiment, const Job* like);

}  // namespace manyworlds::experiments::jobs
