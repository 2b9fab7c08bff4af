// Keys of a configuration that say nothing of time and memory, and those that do not change them although they seem to.
#pragma once

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// Notes what the keys that no function has read mean to the model: nothing, nothing to time and memory, or not known.
/// Refused, as of one of `of`, "a llama", are: a known key whose value is of another kind, whether or not it was read;
/// a key that is not known and nearly one that is; and one that is not known, may change layers, and says something.
/// Any other that is not known is noted, whatever its value.
void judge_remaining_keys(ConfigReader& reader, const import::Node& config, const std::string& of);

/// Refuses keys that are nearly one that has been asked for so far, as judge_remaining_keys() does at the end. Returns
/// whether there are any.
bool refuse_misspelt_keys(ConfigReader& reader, const import::Node& config, const std::string& of);

/// Refuses the keys of a mapping whose values are of another kind than they have; what else they mean is not judged.
void refuse_wrong_kinds(ConfigReader& reader, const import::Node& mapping);

}  // namespace manyworlds::experiments::models
