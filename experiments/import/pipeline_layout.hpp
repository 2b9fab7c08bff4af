// Pipeline layouts in Megatron-LM's notation: which parts of the model each virtual stage has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::import {

/// Expands a layout such as "Et*3|(tt|)*6mL": E, t (a layer), m (one for multi-token prediction) and L, with '|'
/// between stages, and '*' and a number after what is repeated. Commas mean nothing and are left out. Returns nothing
/// if the text is no layout.
std::optional<std::string> expanded_layout(std::string_view text);

/// Returns the number of layers of each stage of an expanded layout.
std::vector<std::int64_t> layers_of_stages(std::string_view expanded);

/// Whether an expanded layout has so many layers for multi-token prediction, all of them right before L.
bool has_mtp_before_loss(std::string_view expanded, std::int64_t mtp_layers);

}  // namespace manyworlds::experiments::import
