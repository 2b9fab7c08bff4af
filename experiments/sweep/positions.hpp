// Samples that are longer than what a model has positions for, by its max_position_embeddings, which model.carried has.
#pragma once

#include <string>

#include "experiments/settings/required_settings.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {

/// The name of what excludes a combination of settings whose samples are longer than a table of positions.
inline constexpr const char* kPositionsRule = "sequence_by_positions";

/// Returns why a table of learned positions has too few rows for the samples; empty if it has enough, or if the model
/// has none or does not say how many, and for the network alone.
std::string missing_positions(const Settings& settings, Scope scope);

/// Returns a note about samples that are longer than what a model with rotary positions was made for; empty otherwise.
std::string further_positions_note(const Settings& settings);

}  // namespace manyworlds::experiments
