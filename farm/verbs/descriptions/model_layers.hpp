// The layers of a model, part by part: parameters, FLOPs, bytes, saved activations, and how they follow from its
// options.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/workload/model/model.hpp"

namespace manyworlds::farm::commands {

/// Numbers are those of one sample on one rank that holds the whole layer, with nothing recomputed.
std::string layers_text(const core::workload::Model& model);
nlohmann::ordered_json layers_json(const core::workload::Model& model);

}  // namespace manyworlds::farm::commands
