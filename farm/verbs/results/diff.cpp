// `manyworlds diff RUN RUN`: compares the results of two runs. Exit code 0: same, 1: different, 2: not comparable.
#include <iostream>

#include "farm/cli/parsing/command.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/run_directory.hpp"
#include "io/ranking/diff.hpp"

namespace manyworlds::farm::commands {
namespace {

int run_diff(const Invocation& invocation) {
  cxxopts::Options options("manyworlds diff",
                           "Compares the results of two runs. Exit 0: same, 1: different, 2: not comparable.");
  options.add_options()("left", "a run directory or its results.h5", cxxopts::value<std::string>())(
      "right", "another", cxxopts::value<std::string>());
  options.parse_positional({"left", "right"});
  options.positional_help("RUN RUN");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const io::Comparison comparison =
      io::compare_results(io::results_path(required(*parsed, "left")), io::results_path(required(*parsed, "right")));
  // Differences are the result, on stdout; the reason why runs are not comparable is a message, on stderr.
  if (comparison.verdict == io::Verdict::cannot_compare)
    print_lines(io::describe(comparison));
  else
    std::cout << io::describe(comparison);
  return static_cast<int>(comparison.verdict);
}

}  // namespace

Command diff_command() {
  return {.name = "diff", .summary = "compares the results of two runs", .run = run_diff};
}

}  // namespace manyworlds::farm::commands
