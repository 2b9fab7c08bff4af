// The families of models that are read, by the model_type of their configuration.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

struct Family {
  std::string_view type;         // model_type
  std::string_view defaults_of;  // class of the transformers library; empty: a file must have every key
  std::string_view defaults;     // what that class takes for a missing key, a JSON object
  void (*read)(ConfigReader& reader);
  std::string_view layer_keys{};  // keys of layers of other kinds that it reads, each between blanks
};

/// Families of a file each: those beside the ones of families.cpp whose layers are alike, and, by mechanism, those
/// whose layers are not.
std::vector<Family> alike_families();
std::vector<Family> parallel_families();      // attention and feed-forward network side by side
std::vector<Family> earlier_families();       // biases of scores, windows in turn, sizes in mappings of their own
std::vector<Family> audio_families();         // encoders of speech, and one beside a decoder
std::vector<Family> encoder_families();       // encoders, and encoders beside decoders
std::vector<Family> text_encoder_families();  // further ones of text
std::vector<Family> linear_mixer_families();  // linear attention with a constant decay, short convolutions
std::vector<Family> window_families();        // layers with windows whose heads are others
std::vector<Family> mixer_families();         // state-space layers and gated delta nets
std::vector<Family> sparse_families();        // attention to keys that an index selects
std::vector<Family> mixed_families();         // layers that differ in windows, experts, positions or norms

/// Returns the families, sorted by type.
const std::vector<Family>& families();

}  // namespace manyworlds::experiments::models
