// Jobs of Megatron-LM: a launch script, a log with the dump of its arguments, or a model_config.yaml.
#pragma once

#include "experiments/jobs/job.hpp"
#include "experiments/megatron/arguments.hpp"

namespace manyworlds::experiments::jobs {

bool is_megatron_log(const JobFile& file);
bool is_megatron_config(const JobFile& file);
bool is_script(const JobFile& file);

/// Each returns the job of a file of its kind. Throws InputError with file, line and argument for what decides the step
/// and is not certain, or is not modelled.
Job read_megatron_log(const JobFile& file, const JobOptions& options, const Catalog& catalog);
Job read_megatron_config(const JobFile& file, const JobOptions& options, const Catalog& catalog);
Job read_megatron_script(const JobFile& file, const JobOptions& options, const Catalog& catalog);

/// Returns the settings that follow from the arguments of Megatron-LM.
Job megatron_job(const JobArguments& arguments, const JobOptions& options, const Catalog& catalog);

}  // namespace manyworlds::experiments::jobs
