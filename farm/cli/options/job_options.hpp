// The options with which a verb takes a training job's own file instead of a SPEC: --like, --cluster, --gpu, --gpus,
// --env.
#pragma once

#include "experiments/jobs/job.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/cli/parsing/command.hpp"

namespace manyworlds::farm::commands {

/// All of them, for a verb that takes SPEC otherwise.
void add_job_options(cxxopts::Options& options);
/// --like and --env, for a verb that has options for machines.
void add_like_options(cxxopts::Options& options);
/// Returns whether a job's file is given. Throws core::InputError if options of a job are given without one.
bool has_job(const cxxopts::ParseResult& parsed);

struct JobExperiment {
  experiments::jobs::Job job;
  experiments::Sweep sweep;  // of one experiment
};
/// Reads the job that --like names.
experiments::jobs::Job read_job_option(const cxxopts::ParseResult& parsed, const experiments::Catalog& catalog);
/// The same as an experiment, on the machines that the other options name, with "key=value" of `set` applied.
JobExperiment job_experiment(const cxxopts::ParseResult& parsed, const std::vector<std::string>& set);
/// The same of a file that the verb has read itself, in the place of --like.
JobExperiment job_experiment(const cxxopts::ParseResult& parsed, const std::vector<std::string>& set,
                             const experiments::jobs::JobFile& file);

}  // namespace manyworlds::farm::commands
