// Keys of a configuration that say nothing of time and memory, and those that do not change them although they seem to.
#pragma once

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// Notes what the keys that no function has read mean to the model: nothing, nothing to time and memory, or not known.
/// A key that is not known and may change layers is refused, as one of `of`, "a llama".
void judge_remaining_keys(ConfigReader& reader, const import::Node& config, const std::string& of);

}  // namespace manyworlds::experiments::models
