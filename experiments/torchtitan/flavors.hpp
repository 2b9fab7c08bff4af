// The models that torchtitan has by name and flavor, as settings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/workload/model/model.hpp"

namespace manyworlds::experiments::jobs::torchtitan {

struct Flavor {
  std::string model, name;      // "llama3", "70B"
  core::workload::Model sizes;  // without sequence
  bool flexible = false;        // attention is FlexAttention, masked by documents
  std::string refused = {};     // why it cannot be modelled; empty if it can
  bool own = false;             // it is not torchtitan's, but to be added to it
  std::string carried = {};     // what of it changes no step, as in the key model.carried
};

/// Returns all flavors: those of v0.2.2, with the Llama 2 of 2024 and the small Llama 3 of 2026.
const std::vector<Flavor>& flavors();
/// Returns a flavor; null if there is none.
const Flavor* find_flavor(const std::string& model, const std::string& name);
/// Returns the names of models, each once, and of the flavors of one of them.
std::vector<std::string> model_names();
std::vector<std::string> flavor_names(const std::string& model);

/// Returns the model's settings without `model.sequence`: option and value.
std::vector<std::pair<std::string, std::string>> settings_of(const Flavor& flavor);

}  // namespace manyworlds::experiments::jobs::torchtitan
