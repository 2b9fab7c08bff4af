// The status of a run for observers: what the run last reported, and whether it is still alive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::farm {

/// Parses the text of a status.json and checks that every member read here or by the live page is present with its
/// type, and that the arrays of `load` and of the plotted points have equal lengths. Throws core::InputError, which
/// names `file`, for any other text.
nlohmann::json parse_status(std::string_view text, const std::string& file);

/// Returns the run's status.json; nullopt if it has not been written yet. `state` becomes "interrupted" if the file
/// reports a running run but no process holds it, and "failed", with a `reason`, if complete.json says so. Throws
/// core::InputError for a directory without a run or a file that this program did not write, and core::IoError.
std::optional<nlohmann::json> read_run_status(const std::filesystem::path& run_directory);

/// Returns whether nothing more will happen unless somebody resumes the run.
bool run_is_over(const nlohmann::json& status);

/// How an incarnation of a run ended in an orderly way.
struct Completion {
  struct Failure {
    std::string status;  // class of the failure: the name of a Status
    std::string reason;
    std::optional<std::uint32_t> experiment;  // first experiment that needs the task, if the job has experiments
  };
  int exit_code = 0;
  std::optional<std::string> reason;  // reason of an end by an error
  std::uint64_t total = 0, failed = 0;
  std::vector<Failure> failures;  // the first failures only
};

/// Parses the text of a complete.json. Throws core::InputError, which names `file`, for any other text.
Completion parse_completion(std::string_view text, const std::string& file);

/// Returns the completion of a run; nullopt if no incarnation ended in an orderly way. Throws as read_run_status().
std::optional<Completion> completion_of(const std::filesystem::path& run_directory);

}  // namespace manyworlds::farm
