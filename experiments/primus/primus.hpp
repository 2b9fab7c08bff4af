// Jobs of AMD's Primus: the YAML of an experiment, whose module, model and overrides make the arguments of Megatron-LM.
#pragma once

#include "experiments/jobs/emitted_job.hpp"
#include "experiments/jobs/job.hpp"
#include "experiments/megatron/dialect.hpp"

namespace manyworlds::experiments::jobs {

bool is_primus(const JobFile& file);

/// Returns the job of an experiment. Throws InputError with file, line and name for what decides the step and is not
/// certain, or is not modelled, and for a description of hardware, which is a cluster.
Job read_primus(const JobFile& file, const JobOptions& options, const Catalog& catalog);

/// Returns the YAML of Primus's experiment that runs an experiment.
EmittedJob emit_primus(const Settings& experiment, const Job* like);

const Dialect& primus_dialect();

}  // namespace manyworlds::experiments::jobs
