// The file with a user's own measured steps.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/analysis/own_steps.hpp"

namespace manyworlds::farm {

/// Returns the path that --learned names: XDG_DATA_HOME/manyworlds/measured.csv, or that in ~/.local/share, for an
/// empty choice; empty for "none", and if neither folder is known.
std::filesystem::path own_table_path(const std::string& choice);

/// Returns the rows of a table; none if there is no such file. Throws core::InputError for what is no such table.
std::vector<experiments::OwnStep> read_own_table(const std::filesystem::path& path);

/// Adds a row, or replaces that with its id, in a table that is created with access for its owner alone if there is
/// none. Processes that do so at the same time wait for each other.
void learn(const std::filesystem::path& path, const experiments::OwnStep& step, const experiments::Settings& settings,
           const experiments::ExperimentConfig& config);

}  // namespace manyworlds::farm
