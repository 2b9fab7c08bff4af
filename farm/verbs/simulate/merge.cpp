// `manyworlds merge RUN_DIR... -o RUN_DIR`: merges the shards of a sweep.
#include "farm/sweep/merge.hpp"

#include "core/base/error.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {
namespace {

int run_merge(const Invocation& invocation) {
  cxxopts::Options options(
      "manyworlds merge",
      "Merges the runs of a sweep's shards: the results equal those of one run of the whole. What is missing "
      "is reported, with exit code 75. Shards may still be running.");
  options.add_options()("runs", "run directories of one sweep", cxxopts::value<std::vector<std::string>>(),
                        "RUN_DIR...")("o,output", "the run directory of the whole", cxxopts::value<std::string>(),
                                      "RUN_DIR")("json", "JSON output");
  options.parse_positional({"runs"});
  options.positional_help("RUN_DIR...");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  if (parsed->count("runs") == 0) throw core::InputError("runs are missing: merge RUN_DIR... -o RUN_DIR (try -h)");
  const auto directories = (*parsed)["runs"].as<std::vector<std::string>>();
  return merge_runs({directories.begin(), directories.end()}, required(*parsed, "output"), parsed->count("json") > 0);
}

}  // namespace

Command merge_command() {
  return {.name = "merge", .summary = "joins runs of shards of a sweep", .run = run_merge};
}

}  // namespace manyworlds::farm::commands
