// `manyworlds design DESIGN.yaml`: what a GPU described by its units is and how fast it trains a job, and which units
// within budgets of area, edge, power and money train it fastest.
#include <fmt/format.h>

#include <iostream>

#include "core/base/error.hpp"
#include "core/network/fabric/transport.hpp"
#include "experiments/text/text.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/options/thread_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/design/design_file.hpp"
#include "farm/design/design_report.hpp"
#include "farm/run/supervisor.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::commands {
namespace {

constexpr std::int64_t kMinEvaluations = 8, kMaxEvaluations = 1'000'000;

design::StudyOptions options_of(const cxxopts::ParseResult& parsed) {
  design::StudyOptions options;
  const std::int64_t evaluations = parsed["evaluations"].as<std::int64_t>();
  if (evaluations < kMinEvaluations || evaluations > kMaxEvaluations)
    throw core::InputError(fmt::format("must be from {} to {}, not {}", kMinEvaluations, kMaxEvaluations, evaluations),
                           "--evaluations");
  const std::vector<std::string>& known = core::network::fidelity_names();
  options.fidelity = parsed["fidelity"].as<std::string>();
  if (std::find(known.begin(), known.end(), options.fidelity) == known.end())
    throw core::InputError(fmt::format("must be one of {}, not '{}'", fmt::join(known, ", "), options.fidelity),
                           "--fidelity");
  options.evaluations = static_cast<std::size_t>(evaluations);
  options.seed = parsed["seed"].as<std::uint64_t>();
  options.threads = threads_of(parsed);
  return options;
}

/// Reads the job's sweep. What is wrong inside it is said with its own place; that it cannot be read, with the
/// design's.
experiments::Sweep read_job(const design::DesignFile& file, const cxxopts::ParseResult& parsed) {
  std::vector<std::string> set;
  if (parsed.count("set") > 0) set = parsed["set"].as<std::vector<std::string>>();
  return experiments::read_sweep(file.job, set, parsed["catalog"].as<std::string>());
}

int run_design(const Invocation& invocation) {
  cxxopts::Options options("manyworlds design",
                           "What a GPU described by its units is: its die, cost, power and how fast it trains a job. "
                           "With 'search', which units within budgets train it fastest.");
  options.add_options()("design", "a YAML file of a GPU, a job and budgets: docs/decisions.md",
                        cxxopts::value<std::string>())("seed", "of the search and of the draws",
                                                       cxxopts::value<std::uint64_t>()->default_value("1"), "N")(
      "evaluations", "designs that the search simulates; as many are drawn",
      cxxopts::value<std::int64_t>()->default_value("400"),
      "N")("fidelity", "of the steps that are shown; the search is analytic",
           cxxopts::value<std::string>()->default_value("analytic"), "NAME")(
      "set", "a setting of the job, as in strategy.tp=2; repeatable", cxxopts::value<std::vector<std::string>>(),
      "KEY=VALUE")("catalog", "a catalog of the user's for the job", cxxopts::value<std::string>()->default_value(""),
                   "PATH")("write-catalog", "writes the GPU as a catalog file, for --catalog of other commands",
                           cxxopts::value<std::string>(), "FILE")("json", "all figures, as JSON");
  add_thread_options(options);
  options.parse_positional({"design"});
  options.positional_help("DESIGN.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::string path = required(*parsed, "design");
  design::StudyOptions study_options = options_of(*parsed);
  const design::DesignFile file = design::parse_design(experiments::import::read_text(path), path);
  const design::DesignJob job(read_job(file, *parsed), file.name, file.job_line);
  ProgressLine line;
  study_options.progress = [&](std::size_t done, std::size_t all) {
    line.draw(fmt::format("{} of {} designs", done, all));
  };
  const design::Study study = design::study(file, job, study_options);
  line.clear();
  if (parsed->count("write-catalog") > 0)
    io::write_atomically((*parsed)["write-catalog"].as<std::string>(), catalog_text(study, job));
  std::cout << (parsed->count("json") > 0 ? study_json(study, job) : study_text(study, job));
  return kExitDone;
}

}  // namespace

Command design_command() {
  return {.name = "design",
          .summary = "a GPU by its units: its die, cost and speed, searched within budgets",
          .run = run_design};
}

}  // namespace manyworlds::farm::commands
