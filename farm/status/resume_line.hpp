// The command that goes on with a run, for whoever is told of it.
#pragma once

#include <filesystem>
#include <string>

namespace manyworlds::farm {

/// As a shell reads it; `store` as in RunOptions.
std::string resume_line(const std::filesystem::path& directory, const std::string& store = "");

}  // namespace manyworlds::farm
