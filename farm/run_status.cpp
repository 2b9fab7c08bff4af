#include "farm/run_status.hpp"

#include <ctime>

#include "core/error.hpp"
#include "farm/run_job.hpp"
#include "io/file.hpp"
#include "io/run_directory.hpp"

namespace manyworlds::farm {
namespace {

constexpr std::int64_t kSilence_s = 15;

void note_interruption(const std::filesystem::path& directory, nlohmann::json& status) {
  if (run_is_over(status) || io::is_in_use(directory)) return;
  // Some file systems keep locks to one host: there only silence tells.
  const bool here = status.at("host") == io::host_name();
  if (!here && std::time(nullptr) - status.at("updated").get<std::int64_t>() <= kSilence_s) return;
  status["state"] = "interrupted";
  const auto complete = io::read_complete(directory);
  if (!complete) return;
  const auto said = nlohmann::json::parse(*complete);
  if (const auto reason = said.find("reason"); reason != said.end())
    status["state"] = "failed", status["reason"] = *reason;
}

}  // namespace

std::optional<nlohmann::json> look_at_run(const std::filesystem::path& run_directory) {
  const auto text = io::read_status(run_directory);
  if (!text) return std::nullopt;
  try {
    nlohmann::json status = nlohmann::json::parse(*text);
    note_interruption(run_directory, status);
    // What a file says is no command to be pasted, and its run may have been started from another folder.
    status["resume"] = resume_line(run_directory, status.value("store", ""));
    return status;
  } catch (const nlohmann::json::exception&) {
    throw core::InputError("not a status this program wrote", (run_directory / "status.json").string());
  }
}

bool run_is_over(const nlohmann::json& status) {
  const auto& state = status.at("state");
  return state != "running" && state != "draining";
}

}  // namespace manyworlds::farm
