// Towers of images in front of a language model, read as networks of its architecture.
#pragma once

#include "experiments/models/config_reader.hpp"

namespace manyworlds::experiments::models {

/// Reads the vision tower of Qwen3-VL and Qwen3.5 and its mergers. Returns whether the document has one of these.
bool read_tower(ConfigReader& reader, const import::Node& document, ModelConfig& config);

}  // namespace manyworlds::experiments::models
