// What families of encoders share: what a model is trained for, its classes, and sizes in the words of BERT.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// What a model is trained for, by the end of the name in `architectures`; refused if it is none of `known`, of which
/// the first is that of a file without the key.
std::string_view purpose(ConfigReader& reader, const std::vector<std::string_view>& known);

/// Classes of whole samples: as many as have a label, or two, as the library takes it.
std::int64_t class_count(ConfigReader& reader);

/// Refuses another text than the one that is modelled.
void require_text(ConfigReader& reader, std::string_view key, std::string_view expected);

/// Widths, heads, feed-forward network and norms, in the words of BERT, ViT and CLIP. All projections have biases.
void read_encoder(ConfigReader& reader, Keys dropout);

}  // namespace manyworlds::experiments::models
