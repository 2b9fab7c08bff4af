// Towers of images in front of a language model, read as networks of its architecture.
#pragma once

#include <string>

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// Reads the image tower of a document and what is between it and the language model: of Qwen3-VL and Qwen3.5, Gemma 3
/// (SigLIP), Llama 4, Kimi K2.5 (MoonViT) and LLaVA (CLIP); and of CLIP both towers with their projections and loss.
/// Returns whether the document has one of these. Keys of the document that are not known are told or refused.
bool read_tower(ConfigReader& reader, const import::Node& document, ModelConfig& config);

/// Whether documents of a family that read_tower() knows have their language model in 'text_config'.
bool has_text_member(const std::string& type);

}  // namespace manyworlds::experiments::models
