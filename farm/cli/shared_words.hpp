// Options that several verbs take, so that they mean the same everywhere.
#pragma once

#include "farm/cli/command.hpp"
#include "farm/run/run_job.hpp"

namespace manyworlds::farm::commands {

/// --assume, which is one more --set.
void add_assume_word(cxxopts::Options& options);
void take_assume_word(const cxxopts::ParseResult& parsed, std::vector<std::string>& set);

/// What names a sweep: SPEC, --set (any number of times), --catalog, --assume.
struct SpecWords {
  std::string spec;
  std::vector<std::string> set;  // "a.b=value", in the order given
  std::string catalog;           // a folder, or ""
};
void add_spec_words(cxxopts::Options& options);
SpecWords spec_words(const cxxopts::ParseResult& parsed);

/// What a store may hold unless somebody says otherwise, as a word: "20GiB".
std::string store_limit();

/// What -o says, else runs/NAME. Throws InputError where NAME makes no folder.
std::string run_directory_of(const cxxopts::ParseResult& parsed, const std::string& name);

/// How every task of a run is computed: --store, --task-memory, --task-time, --no-sharing.
void add_task_words(cxxopts::Options& options);
/// Those and how a run is run: -j, --store-limit, --in-process, --stop-after, --rebuild.
/// Without sharing no store is used either.
void add_run_words(cxxopts::Options& options);
RunOptions run_words(const cxxopts::ParseResult& parsed, const std::string& directory);

/// --serve, of verbs that run a sweep. Throws InputError for what is no address.
void add_serve_words(cxxopts::Options& options);
void take_serve_words(const cxxopts::ParseResult& parsed, RunOptions& options);

bool no_sharing(const cxxopts::ParseResult& parsed);

}  // namespace manyworlds::farm::commands
