// A model read from a Hugging Face configuration (config.json): settings of `model`, each with the key that it is from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/options.hpp"
#include "core/workload/model/model.hpp"
#include "experiments/model_keys/carried.hpp"

namespace manyworlds::experiments::models {

/// A setting of the model and where it is from.
struct ConfigValue {
  std::string option;  // "kv_heads"
  core::OptionValue value;
  std::string key;       // of the configuration; empty: a property of the family
  int line = 0;          // of the key; 0: not in the file
  bool assumed = false;  // the file does not have the key; the value is the default of the family's class
};

/// A part of the configuration that the model does not have, or that changes neither time nor memory.
struct ConfigNote {
  std::string key, text;
};

struct ModelConfig {
  std::string file;
  std::string name;          // of the folder, or of the file
  std::string family;        // the model_type, "qwen3_moe"
  std::string architecture;  // "Qwen3MoeForCausalLM"; may be empty
  std::string defaults_of;   // class of the transformers library that has the defaults of the family; may be empty
  std::vector<ConfigValue> values;
  std::int64_t sequence = 0;       // assumed, since a configuration does not say what is trained on
  std::int64_t max_positions = 0;  // upper limit of the sequence; 0: not given
  std::vector<ConfigNote> left_out, without_effect;
  std::vector<CarriedArgument> carried;      // those that begin with config. have no argument
  std::vector<ConfigNote> carried_defaults;  // keys of which the default of the class is carried, and its value

  const ConfigValue* find(std::string_view option) const;
  /// Returns the model with the assumed sequence.
  core::workload::Model model() const;
};

/// Returns what was assumed and left out, on one line.
std::string summary(const ModelConfig& config);

/// Returns a count as people say it: "8.19 B".
std::string count_text(std::int64_t count);

}  // namespace manyworlds::experiments::models
