// Reads a Hugging Face configuration (config.json) from a file or a text.
#pragma once

#include <string>
#include <string_view>

#include "experiments/model_keys/model_config.hpp"

namespace manyworlds::experiments::models {

/// Returns whether a name can only be a path: it ends in .json or begins with a folder (`./`, `../`, `/`). Behind '#'
/// it may name a member of the configuration, as in config.json#text_config.
bool is_config_path(const std::string& name);
/// Returns the path without the member.
std::string file_of_path(const std::string& path);

/// Reads the file, or the config.json of a folder. Throws InputError with file, line and key for a value out of range,
/// for a family that is not known, and for layers that cannot be modelled.
ModelConfig read_model_config(const std::string& path);

/// Reads a configuration from text; `file` is its name in messages, `member` the member that holds the model's keys
/// (may be empty).
ModelConfig parse_model_config(std::string_view text, const std::string& file, const std::string& member = {});

}  // namespace manyworlds::experiments::models
