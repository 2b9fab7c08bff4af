// Jobs of torchtitan: a TOML file of versions up to v0.2.2, or a function of a config_registry.py.
#pragma once

#include "experiments/jobs/emitted_job.hpp"

namespace manyworlds::experiments::jobs {

bool is_torchtitan_toml(const JobFile& file);
bool is_torchtitan_registry(const JobFile& file);

/// Each returns the job of a file of its kind. Throws InputError with file, line and key for what decides the step and
/// is not certain, or is not modelled.
Job read_torchtitan_toml(const JobFile& file, const JobOptions& options, const Catalog& catalog);
/// The function is the one that `file.member` names; if there are several and none is named, an error lists them.
Job read_torchtitan_registry(const JobFile& file, const JobOptions& options, const Catalog& catalog);

/// Returns the TOML of an experiment, with the line that launches it as a comment. Throws InputError for a model of
/// which torchtitan has no flavor, and for what it cannot run.
EmittedJob emit_torchtitan(const Settings& experiment, const Job* like);

}  // namespace manyworlds::experiments::jobs
