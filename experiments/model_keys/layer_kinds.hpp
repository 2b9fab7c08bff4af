// Layers that the model does not have: found by their keys, in configurations of any family, and refused by name.
#pragma once

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// Refuses what `config` says of layers that cannot be modelled. `read` are the keys that its family reads, each
/// between blanks.
void refuse_unknown_layers(ConfigReader& reader, const import::Node& config, const std::string& family,
                           std::string_view read);

/// Returns whether refuse_unknown_layers() judges a key.
bool is_of_layer_kinds(std::string_view key);

/// Refuses the towers of a document around a language model (`vision_config`, `audio_config`); `member` is where the
/// language model alone stands.
void refuse_towers(ConfigReader& reader, const import::Node& document, const std::string& member);

}  // namespace manyworlds::experiments::models
