// Jobs of DeepSpeed: its configuration in JSON, with a model named beside it, or a launch script of Megatron-DeepSpeed.
#pragma once

#include "experiments/jobs/emitted_job.hpp"

namespace manyworlds::experiments::jobs {

bool is_deepspeed_config(const JobFile& file);
bool is_deepspeed_script(const JobFile& file);

/// Each returns the job of a file of its kind; the configuration needs `options.model`. Throws InputError with file,
/// line and key for what decides the step and is not certain, or is not modelled.
Job read_deepspeed_config(const JobFile& file, const JobOptions& options, const Catalog& catalog);
Job read_deepspeed_script(const JobFile& file, const JobOptions& options, const Catalog& catalog);

/// Returns a script that writes DeepSpeed's configuration and launches Megatron-DeepSpeed with it. Throws InputError
/// for what that cannot run, such as experts.
EmittedJob emit_deepspeed(const Settings& experiment, const Job* like);

}  // namespace manyworlds::experiments::jobs
