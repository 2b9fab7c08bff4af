// `manyworlds top RUN`: the best experiments of a run.
#include <iostream>

#include "farm/cli/command.hpp"
#include "farm/results/memory_advice.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/run_directory.hpp"
#include "io/ranking/top.hpp"

namespace manyworlds::farm::commands {
namespace {

int run_top(const Invocation& invocation) {
  cxxopts::Options options("manyworlds top", "The best experiments of a run.");
  const io::TopOptions defaults;
  options.add_options()("run", "a run directory or its results.h5", cxxopts::value<std::string>())(
      "k", "how many", cxxopts::value<std::int64_t>()->default_value(std::to_string(defaults.k)), "N")(
      "by", "the column to rank by; may end in ' asc' or ' desc'",
      cxxopts::value<std::string>()->default_value(defaults.by),
      "COLUMN")("where", "only these, as in 'memory_peak_bytes < 80GiB and tp * pp <= 8'",
                cxxopts::value<std::string>()->default_value(""), "CONDITION")("json", "all columns of each, as JSON");
  options.parse_positional({"run"});
  options.positional_help("RUN");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const io::Results results = io::read_results(io::results_path(required(*parsed, "run")));
  const io::Ranking ranking = io::rank_experiments(
      results,
      {(*parsed)["k"].as<std::int64_t>(), (*parsed)["by"].as<std::string>(), (*parsed)["where"].as<std::string>()});
  if (parsed->count("json") > 0)
    std::cout << io::render_json(results, ranking);
  else if (none_fits(results))
    std::cout << none_fits_text(results) << "`manyworlds explain SPEC.yaml --experiment ID` says what would fit\n";
  else
    std::cout << io::render_text(results, ranking);
  return kExitDone;
}

}  // namespace

Command top_command() {
  return {.name = "top", .summary = "the best experiments of a run", .run = run_top};
}

}  // namespace manyworlds::farm::commands
