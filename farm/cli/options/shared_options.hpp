// Options that several verbs share, so that they have the same meaning everywhere.
#pragma once

#include "experiments/catalog/catalog.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/run/run_job.hpp"

namespace manyworlds::farm::commands {

/// The option --assume, which is one more --set.
void add_assume_option(cxxopts::Options& options);
void apply_assume_option(const cxxopts::ParseResult& parsed, std::vector<std::string>& set);

/// The options that define a sweep: SPEC, --set (repeatable), --catalog, --assume.
struct SpecOptions {
  std::string spec;
  std::vector<std::string> set;  // "a.b=value", in the given order
  std::string catalog;           // a directory, or ""
};
void add_spec_options(cxxopts::Options& options);
SpecOptions read_spec_options(const cxxopts::ParseResult& parsed);

/// The option --no-guesses, by which refuse_guesses() refuses a sweep if an answer rests on a guess of the catalog: it
/// throws core::InputError, which names every such figure.
void add_guess_option(cxxopts::Options& options);
void refuse_guesses(const cxxopts::ParseResult& parsed, const experiments::Sweep& sweep,
                    const experiments::Catalog& catalog);
/// The same with the compiled catalog and what --catalog adds.
void refuse_guesses(const cxxopts::ParseResult& parsed, const experiments::Sweep& sweep);

/// Returns the default size limit of a store as the value of an option: "20GiB".
std::string default_store_limit();

/// Returns the value of -o, or runs/NAME. Throws core::InputError if NAME cannot be the name of a directory.
std::string run_directory_of(const cxxopts::ParseResult& parsed, const std::string& name);

/// Options for the computation of tasks: --store, --task-memory, --task-time, --no-sharing.
void add_task_options(cxxopts::Options& options);
/// The options of add_task_options() and those of a run: -j, --in-process, --srun, --store-limit, --stop-after,
/// --start-time, --rebuild. Without sharing, no store is used either.
void add_run_options(cxxopts::Options& options);
RunOptions read_run_options(const cxxopts::ParseResult& parsed, const std::string& directory);

/// The option --serve of verbs that run a sweep. Throws core::InputError for an invalid address.
void add_serve_options(cxxopts::Options& options);
void apply_serve_options(const cxxopts::ParseResult& parsed, RunOptions& options);

bool no_sharing(const cxxopts::ParseResult& parsed);

}  // namespace manyworlds::farm::commands
