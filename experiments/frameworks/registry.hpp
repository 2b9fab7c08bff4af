// The training frameworks whose jobs are understood.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/job.hpp"

namespace manyworlds::experiments::jobs {

/// A kind of files, and what reads them.
struct JobKind {
  std::string framework;  // "Megatron-LM"
  std::string files;      // for messages: "a launch script"
  bool (*is_one)(const JobFile& file);
  Job (*read)(const JobFile& file, const JobOptions& options, const Catalog& catalog);
  bool reads_environment = false;  // --env means something to it
  bool names_model = false;        // its files only name their model, so that --model may say another
};

/// Returns all kinds, in the order in which they are asked whether a file is theirs.
const std::vector<JobKind>& job_kinds();

/// Reads a job's file, whose kind its content tells. A file that nobody claims is read as a launch script. Throws
/// InputError with file, line and argument for what decides the step and is not certain, or is not modelled.
Job read_job(const std::string& path, const JobOptions& options, const Catalog& catalog);
/// The same of a file whose text is known.
Job read_job(const JobFile& file, const JobOptions& options, const Catalog& catalog);

/// The same of a file that was read already, or of a part of it.
Job read_job(const JobFile& file, const JobOptions& options, const Catalog& catalog);

}  // namespace manyworlds::experiments::jobs
