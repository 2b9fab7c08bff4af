// `manyworlds status RUN_DIR`: the status of a run, read from its status.json without contacting the run.
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/run/supervisor.hpp"
#include "farm/status/progress.hpp"
#include "farm/status/resume_line.hpp"
#include "farm/status/run_status.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {

namespace {

/// Throws InputError if there is no status: before a run's first two seconds, and where a full disk took it.
nlohmann::json read(const std::string& directory) {
  if (auto status = read_run_status(directory)) return *std::move(status);
  if (const auto completion = completion_of(directory); completion && completion->reason)
    throw core::InputError(fmt::format("{}: the run ended without a status: {}", directory, *completion->reason));
  throw core::InputError(
      fmt::format("{}: the run has no status.json yet, which it writes within seconds; if it is not running any more, "
                  "`{}` goes on with it",
                  directory, resume_line(directory)));
}

int run_status(const Invocation& invocation) {
  cxxopts::Options options("manyworlds status", "The status of a run.");
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
    for (; !run_is_over(status); status = read(directory)) {
      line.draw(progress_line(status));
      std::this_thread::sleep_for(std::chrono::seconds(2));
    }
  }
  std::cout << (json ? status.dump(1) + "\n" : describe_status(status));
  return kExitDone;
}

}  // namespace

Command status_command() {
  return {.name = "status", .summary = "shows the status of a run", .run = run_status};
}

}  // namespace manyworlds::farm::commands
