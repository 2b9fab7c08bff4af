// The options with which a verb takes a training job's own file instead of a SPEC: --like, --cluster, --gpu, --gpus,
// --env.
#pragma once

#include "experiments/jobs/job.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/cli/command.hpp"

namespace manyworlds::farm::commands {

void add_job_options(cxxopts::Options& options);
/// Returns whether a job's file is given. Throws core::InputError if options of a job are given without one.
bool has_job(const cxxopts::ParseResult& parsed);

struct JobExperiment {
  experiments::jobs::Job job;
  experiments::Sweep sweep;  // of one experiment
};
/// Reads the job that --like names, on the machines that the other options name.
JobExperiment job_experiment(const cxxopts::ParseResult& parsed);

}  // namespace manyworlds::farm::commands
