// The arguments with which Megatron-LM is started, each with its place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/jobs/job.hpp"
#include "experiments/jobs/named_model.hpp"

namespace manyworlds::experiments::jobs {

struct Argument {
  std::string name;  // without its dashes
  std::vector<Text> values;
  Place place;
};

/// Returns the first value of an argument, `otherwise` if it has none. Throws InputError for one that nobody knows.
std::string first_value(const Argument& argument, const std::string& otherwise = "");

/// What a file says about a job before its arguments are understood.
struct JobArguments {
  std::string kind;  // "Megatron-LM script"
  std::vector<Argument> arguments;
  std::int64_t nodes = 0, gpus_per_node = 0, gpus = 0;  // 0: not said
  std::vector<std::string> notes;                       // for the user
  std::vector<JobSetting> model;     // of a model that is only named; what arguments say of it themselves counts more
  std::string stack = {};            // of the catalog, if the kind of file tells: software of before 2023
  std::vector<Text> documents = {};  // here-documents of the script, which are files that it writes
  UnknownSize unknown_size = {};     // of a launcher
  bool is_batch_job = false;         // Slurm starts it: #SBATCH lines, or srun
};

/// Splits the words behind a program's name into arguments, by how many values each takes. Throws InputError for a word
/// that is no argument, for an unknown name, with the nearest known, and for a missing value.
std::vector<Argument> split_arguments(const std::vector<Text>& words);

/// Reads a launch script. Throws InputError if it runs no training, or nobody knows which.
JobArguments read_script(const std::string& text, const std::string& path,
                         const std::map<std::string, std::string>& environment);

/// A setting under Megatron-LM's own name of it, as its log prints it: "add_bias_linear", "False".
struct OwnSetting {
  std::string argument;           // without dashes; empty: Megatron-LM has no such setting
  std::optional<Argument> given;  // nothing if the value is that of an argument that is not given
};

/// Throws InputError for a switch that is neither True nor False.
OwnSetting own_setting(const std::string& name, const std::string& value, const Place& place);

/// Megatron-LM's own name of what an argument sets: fp8 of --fp8-format, add_bias_linear of --disable-bias-linear,
/// which is false where the argument is given.
struct OwnName {
  std::string name;
  bool inverted = false;
};
OwnName own_name(const std::string& argument);

/// Returns whether a value means that an argument is not given: None, False, [], {} or nothing.
bool is_off(const std::string& value);

/// Returns whether a text is a log with the dump of Megatron-LM's arguments.
bool has_argument_dump(const std::string& text);
JobArguments read_argument_dump(const std::string& text, const std::string& path);

/// Reads the MODEL_ARGS of a model_config.yaml.
JobArguments read_model_config(const std::string& text, const std::string& path);

}  // namespace manyworlds::experiments::jobs
