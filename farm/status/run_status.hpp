// Where a run stands, for those who only look: what it last said of itself, and what has become of it since.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::farm {

/// The text of a status.json. It has every member that anything here or the live page reads, of its type; rows of
/// `load` and of points are whole. Throws InputError, naming `file`, for any other text.
nlohmann::json parse_status(std::string_view text, const std::string& file);

/// Its status.json; nothing where the run has not got that far. `state` is "interrupted" where it said that it runs and
/// nobody runs it any more, and "failed", with a `reason`, where complete.json says so. Throws InputError for a
/// directory that holds no run or a file that is none of ours, IoError.
std::optional<nlohmann::json> look_at_run(const std::filesystem::path& run_directory);

/// Whether nothing more will happen unless somebody goes on with it.
bool run_is_over(const nlohmann::json& status);

/// How a life of a run ended in order.
struct Completion {
  struct Failure {
    std::string status;  // its class: the name of a Status
    std::string reason;
    std::optional<std::uint32_t> experiment;  // the first that needs it, where the run has experiments
  };
  int exit_code = 0;
  std::optional<std::string> reason;  // of an end by an error
  std::uint64_t total = 0, failed = 0;
  std::vector<Failure> failures;  // the first of them
};

/// The text of a complete.json. Throws InputError, naming `file`, for any other text.
Completion parse_completion(std::string_view text, const std::string& file);

/// Of a run directory; nothing where no life of the run ended in order. Throws as look_at_run().
std::optional<Completion> completion_of(const std::filesystem::path& run_directory);

}  // namespace manyworlds::farm
