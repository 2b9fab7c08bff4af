// `manyworlds status RUN_DIR`: where a run stands, from its status.json; the run itself is not asked.
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "farm/commands/verbs.hpp"
#include "farm/exit_code.hpp"
#include "farm/progress.hpp"
#include "farm/supervisor.hpp"
#include "io/file.hpp"
#include "io/run_directory.hpp"

namespace manyworlds::farm::commands {

namespace {

constexpr std::int64_t kSilence_s = 15;

bool over(const nlohmann::json& status) {
  const auto& state = status.at("state");
  return state != "running" && state != "draining";
}

/// A run whose last word was that it runs, and which nobody runs any more.
void note_interruption(const std::string& directory, nlohmann::json& status) {
  if (over(status) || io::is_in_use(directory)) return;
  // Some file systems keep locks to one host: there only silence tells.
  const bool here = status.at("host") == io::host_name();
  if (here || std::time(nullptr) - status.at("updated").get<std::int64_t>() > kSilence_s)
    status["state"] = "interrupted";
}

nlohmann::json read(const std::string& directory) {
  const auto text = io::read_status(directory);
  if (!text) throw core::InputError(fmt::format("{}: the run has not begun: it has no status.json yet", directory));
  try {
    nlohmann::json status = nlohmann::json::parse(*text);
    note_interruption(directory, status);
    return status;
  } catch (const nlohmann::json::exception&) {
    throw core::InputError("not a status this program wrote", directory + "/status.json");
  }
}

}  // namespace

int run_status(const Invocation& invocation) {
  cxxopts::Options options("manyworlds status", "Where a run stands.");
  options.add_options()("run", "the run directory", cxxopts::value<std::string>())(
      "watch", "look again every two seconds until the run is over")("json", "the status as JSON");
  options.parse_positional({"run"});
  options.positional_help("RUN_DIR");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::string directory = required(*parsed, "run");
  const bool watch = parsed->count("watch") > 0, json = parsed->count("json") > 0;
  nlohmann::json status = read(directory);
  if (watch) {
    ProgressLine line;
    for (; !over(status); status = read(directory)) {
      line.draw(progress_line(status));
      std::this_thread::sleep_for(std::chrono::seconds(2));
    }
  }
  std::cout << (json ? status.dump(1) + "\n" : describe_status(status));
  return kExitDone;
}

}  // namespace manyworlds::farm::commands
