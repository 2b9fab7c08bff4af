// The command line that resumes a run, for messages to the user.
#pragma once

#include <filesystem>
#include <string>

namespace manyworlds::farm {

/// Returns the command, quoted for a shell; `store` as in RunOptions.
std::string resume_line(const std::filesystem::path& directory, const std::string& store = "");

}  // namespace manyworlds::farm
