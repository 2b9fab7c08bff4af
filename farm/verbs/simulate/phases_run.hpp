// Runs the experiments of a document of phases and tells its iteration, for the verbs `phases` and `resume`.
#pragma once

#include "experiments/phases/expanded_phases.hpp"
#include "farm/run/run_job.hpp"

namespace manyworlds::farm::commands {

/// Runs the job of these phases that serialize_job() made, and prints the iteration, with `json` as JSON. Returns the
/// exit code: that of a run, or failed if there is no prediction.
int run_phases_job(const RunOptions& options, const experiments::phases::ExpandedPhases& expanded,
                   const std::string& serialized_job, bool json, Zygote& zygote);

}  // namespace manyworlds::farm::commands
