// Where a run stands, for those who only look: what it last said of itself, and what has become of it since.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace manyworlds::farm {

/// Its status.json; nothing where the run has not got that far. `state` is "interrupted" where it said that it runs and
/// nobody runs it any more, and "failed", with a `reason`, where complete.json says so. Throws InputError for a
/// directory that holds no run or a file that is none of ours, IoError.
std::optional<nlohmann::json> look_at_run(const std::filesystem::path& run_directory);

/// Whether nothing more will happen unless somebody goes on with it.
bool run_is_over(const nlohmann::json& status);

}  // namespace manyworlds::farm
