// A training job as the experiment that it is: settings, each with the place in the job's file that says so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/shell/state.hpp"

namespace manyworlds::experiments::jobs {

using shell::Place;
using shell::Text;

/// Throws InputError at a place.
[[noreturn]] void fail_at(const Place& place, const std::string& what);

struct JobSetting {
  std::string key, value;
  Place place;
};

/// What a file says of its size and only the machines know: "--nnodes is $SLURM_NNODES, which is set where the job
/// runs".
struct UnknownSize {
  std::string what;  // empty: nothing
  Place place;
};

struct Job {
  std::string kind, file;
  std::string framework;  // as the registry of files calls it: "Megatron-LM"
  std::string name;       // of the experiment: the file's, without folder and ending
  std::string stack;      // of the catalog
  std::vector<JobSetting> settings;
  std::int64_t gpus = 0;        // 0: nobody says
  std::int64_t irrelevant = 0;  // arguments that change neither time nor memory
  std::size_t mapped = 0;       // arguments that settings follow from
  std::vector<std::string> notes;
  std::vector<std::string> beside_the_step;  // the irrelevant ones as they are given, where the reader keeps them
  bool is_batch_job = false;                 // Slurm starts it
  UnknownSize unknown_size;                  // why nobody says how many GPUs, if the file begins to
};

/// A job's file, read.
struct JobFile {
  std::string path, text;
  std::string member = {};  // which of several jobs in it: llama3_70b of config_registry.py:llama3_70b; may be empty

  /// Returns the ending of its name, with the dot: ".sh".
  std::string ending() const;
};

struct JobOptions {
  std::map<std::string, std::string> environment;  // variables that a script reads
  std::int64_t gpus = 0;                           // instead of what the file says; 0: as it says
  std::string model{};                             // of a file that only names its model, or none; empty: as it says
};

/// Throws InputError: how many GPUs are to be given, and why the file does not tell.
[[noreturn]] void fail_without_gpus(const Job& job);

/// Returns the job as a document of one experiment on machines `cluster` (the YAML of that section). What line N of the
/// job's file sets stands on line N, so that messages name the job's lines.
std::string document_of(const Job& job, const std::string& cluster);

/// Returns what the user should know of how the job was read, one line each.
std::vector<std::string> explanation(const Job& job);

}  // namespace manyworlds::experiments::jobs
