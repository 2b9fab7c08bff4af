// Keys of a configuration that change no step and are the model's: what is launched needs them.
#pragma once

#include <string>
#include <vector>

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// Keys that say how many positions a model was made for; a file has one of them.
inline const Keys kPositionKeys{"max_position_embeddings", "n_positions", "max_target_positions", "max_seq_len"};

/// Adds the arguments of Megatron-LM @d98e8a6 that positions, norms, initial values and routers of `file` are; where it
/// lacks a key, those that the family's class of the transformers library takes for it, each with a note. What no
/// argument says is added as config.KEY.
void add_carried(ConfigReader& reader, const import::Node& file, const ModelConfig& model);

/// Returns the keys that add_carried() looks up, of the file and of the mapping of its rotation.
std::vector<std::string> carried_keys();
std::vector<std::string> rotation_keys();

}  // namespace manyworlds::experiments::models
