// Executions of Calculon (calculon-ai/calculon: Isaev et al., SC'23): parallelism, batch and recomputation in JSON,
// with the model's JSON named beside it.
#pragma once

#include "experiments/jobs/job.hpp"
#include "experiments/jobs/known_names.hpp"

namespace manyworlds::experiments::jobs {

namespace calculon {
/// Returns what each key of an execution means here, for the reader and docs/jobs.md.
const KnownNames& known_keys();
}  // namespace calculon

bool is_calculon_execution(const JobFile& file);
/// Returns the job of an execution; `options.model` is the path of the model's JSON, Calculon's or a model's of the
/// catalog. Throws InputError with file, line and key for what decides the step and is not certain, or is not modelled.
Job read_calculon_execution(const JobFile& file, const JobOptions& options, const Catalog& catalog);

}  // namespace manyworlds::experiments::jobs
