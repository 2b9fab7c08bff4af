// Jobs of NVIDIA's NeMo: the config_*.sh of MLPerf Training, the YAML of NeMo and Megatron-Bridge, and that of NeMo
// Automodel.
#pragma once

#include "experiments/jobs/emitted_job.hpp"
#include "experiments/jobs/job.hpp"

namespace manyworlds::experiments::jobs {

bool is_mlperf_config(const JobFile& file);
bool is_mlperf_system(const JobFile& file);
bool is_automodel(const JobFile& file);
bool is_nemo(const JobFile& file);

/// Each returns the job of a file of its kind. Throws InputError with file, line and name for what decides the step and
/// is not certain, or is not modelled.
Job read_mlperf_config(const JobFile& file, const JobOptions& options, const Catalog& catalog);
Job read_automodel(const JobFile& file, const JobOptions& options, const Catalog& catalog);
Job read_nemo(const JobFile& file, const JobOptions& options, const Catalog& catalog);
/// Throws InputError: a system of MLPerf is a cluster, not a job.
Job read_mlperf_system(const JobFile& file, const JobOptions& options, const Catalog& catalog);

/// Returns the YAML of NeMo that runs an experiment.
EmittedJob emit_nemo(const Settings& experiment, const Job* like);

}  // namespace manyworlds::experiments::jobs
