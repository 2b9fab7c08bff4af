// `manyworlds compare RUN A B`: two experiments of a run side by side.
#include <fmt/format.h>

#include <iostream>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/run_directory.hpp"
#include "io/ranking/compare.hpp"

namespace manyworlds::farm::commands {

namespace {

std::int64_t id_of(const std::string& text) {
  const auto id = core::number_in<std::int64_t>(text);
  if (!id) throw core::InputError(fmt::format("'{}' is no id of an experiment; `manyworlds top RUN` tells them", text));
  return *id;
}

int run_compare(const Invocation& invocation) {
  cxxopts::Options options("manyworlds compare",
                           "Two experiments of a run: what differs, and where the time went instead.");
  options.add_options()("run", "a run directory or its results.h5", cxxopts::value<std::string>())(
      "a", "the id of an experiment", cxxopts::value<std::string>())("b", "of another", cxxopts::value<std::string>())(
      "json", "all of it as JSON, times in picoseconds and memory in bytes");
  options.parse_positional({"run", "a", "b"});
  options.positional_help("RUN A B");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::string run = required(*parsed, "run");
  if (parsed->count("a") == 0 || parsed->count("b") == 0)
    throw core::InputError("needs the ids of two experiments: compare RUN A B");
  const std::int64_t a = id_of(required(*parsed, "a")), b = id_of(required(*parsed, "b"));
  const io::ExperimentComparison comparison = io::compare_experiments(io::read_results(io::results_path(run)), a, b);
  std::cout << (parsed->count("json") > 0 ? io::render_json(comparison) : io::render_text(comparison));
  return kExitDone;
}

}  // namespace

Command compare_command() {
  return {.name = "compare", .summary = "two experiments of a run side by side", .run = run_compare};
}

}  // namespace manyworlds::farm::commands
