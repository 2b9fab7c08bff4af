// The arguments with which Megatron-LM is started, each with its place.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiments/jobs/job.hpp"

namespace manyworlds::experiments::jobs {

struct Argument {
  std::string name;  // without its dashes
  std::vector<Text> values;
  Place place;
};

/// What a file says about a job before its arguments are understood.
struct JobArguments {
  std::string kind;  // "Megatron-LM script"
  std::vector<Argument> arguments;
  std::int64_t nodes = 0, gpus_per_node = 0, gpus = 0;  // 0: not said
  std::vector<std::string> notes;                       // for the user
};

/// Splits the words behind a program's name into arguments, by how many values each takes. Throws InputError for a word
/// that is no argument, for an unknown name, with the nearest known, and for a missing value.
std::vector<Argument> split_arguments(const std::vector<Text>& words);

/// Reads a launch script. Throws InputError if it runs no training, or nobody knows which.
JobArguments read_script(const std::string& text, const std::string& path,
                         const std::map<std::string, std::string>& environment);

/// Returns whether a text is a log with the dump of Megatron-LM's arguments.
bool has_argument_dump(const std::string& text);
JobArguments read_argument_dump(const std::string& text, const std::string& path);

/// Reads the MODEL_ARGS of a model_config.yaml.
JobArguments read_model_config(const std::string& text, const std::string& path);

}  // namespace manyworlds::experiments::jobs
