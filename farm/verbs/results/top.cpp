// `manyworlds top RUN`: the best experiments of a run.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "core/base/error.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/cli/options/emit_options.hpp"
#include "farm/cli/options/job_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/status/resume_line.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/texts/memory_advice.hpp"
#include "io/log/run_directory.hpp"
#include "io/ranking/top.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm::commands {
namespace {

/// Emits the experiment that --experiment names, or else the first of the ranking.
void emit(const cxxopts::ParseResult& parsed, EmitOptions& options, const io::Results& results,
          const io::Ranking& ranking) {
  if (!options.any()) return;
  if (parsed.count("experiment") == 0 && ranking.rows.empty())
    throw core::InputError("there is no first; --experiment ID names one", "--emit");
  const std::int64_t id =
      parsed.count("experiment") > 0
          ? parsed["experiment"].as<std::int64_t>()
          : static_cast<std::int64_t>(results.experiments.find("id")->number_at(ranking.rows.front().row));
  const experiments::Catalog catalog;
  std::optional<experiments::jobs::Job> job;
  if (parsed.count("like") > 0) job = read_job_option(parsed, catalog);
  const std::filesystem::path run = required(parsed, "run");
  if (!io::is_run_directory(run))
    throw core::InputError("holds no settings; --emit needs the run directory", run.string());
  options.emit(experiment_of_run(run, id).settings, job ? &*job : nullptr, catalog);
  options.write({fmt::format("experiment {} of {}", id, required(parsed, "run"))});
}

/// Whether the experiments are parts of phases (`manyworlds phases`), none of which is in another's place.
bool are_parts_of_phases(const io::Results& results) {
  return results.axis_names == std::vector<std::string>{"phase", "part"};
}

/// Returns the parts of phases in the order of the document, `most` of them.
std::string parts_text(const io::Results& results, const std::string& run, std::size_t most) {
  const io::Table& experiments = results.experiments;
  std::vector<std::vector<std::string>> lines{{"id", "phase", "part", "step time", "tokens/s/GPU", "peak memory", ""}};
  const io::Column *time = experiments.find("step_time_s"), *rate = experiments.find("tokens_per_s_per_gpu"),
                   *memory = experiments.find("memory_peak_bytes");
  for (std::size_t row = 0; row < std::min(experiments.rows(), most); ++row) {
    const std::string status = experiments.text_at("status", row);
    lines.push_back({experiments.text_at("id", row), experiments.text_at("phase", row),
                     experiments.text_at("part", row), io::format_cell(time, row), io::format_cell(rate, row),
                     io::format_cell(memory, row), status == "ran" ? "" : status});
  }
  return io::align_columns(lines, {false, true, true, false, false, false, true}) +
         fmt::format(
             "these are parts of the phases of one iteration, not choices, so that none is the best of them; "
             "`{}` tells the iteration, and --by COLUMN ranks them all the same\n",
             resume_line(run));
}

int run_top(const Invocation& invocation) {
  cxxopts::Options options("manyworlds top", "The best experiments of a run.");
  const io::TopOptions defaults;
  options.add_options()("run", "a run directory or its results.h5", cxxopts::value<std::string>())(
      "k", "how many", cxxopts::value<std::int64_t>()->default_value(std::to_string(defaults.k)), "N")(
      "by", "the column to rank by; may end in ' asc' or ' desc'; default: the sweep's objective",
      cxxopts::value<std::string>(),
      "COLUMN")("where", "only these, as in 'memory_peak_bytes < 80GiB and tp * pp <= 8'",
                cxxopts::value<std::string>()->default_value(""), "CONDITION")("json", "all columns of each, as JSON");
  add_emit_options(options, "the first of these");
  options.add_options()("experiment", "with --emit: the one with this id instead", cxxopts::value<std::int64_t>(),
                        "ID")("like", "with --emit: a job's file; comments say where the flags differ from it",
                              cxxopts::value<std::string>(),
                              "FILE")("env", "with --like: a variable that the script takes from the environment",
                                      cxxopts::value<std::vector<std::string>>(), "NAME=VALUE");
  options.parse_positional({"run"});
  options.positional_help("RUN");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  EmitOptions emit_options(*parsed);
  for (const char* name : {"experiment", "like", "env"})
    if (parsed->count(name) > 0 && !emit_options.any())
      throw core::InputError("belongs to --emit TARGET", std::string("--") + name);
  const io::Results results = io::read_results(io::results_path(required(*parsed, "run")));
  const io::Ranking ranking = io::rank_experiments(
      results, {(*parsed)["k"].as<std::int64_t>(), if_given(*parsed, "by"), (*parsed)["where"].as<std::string>()});
  const bool asked = parsed->count("by") + parsed->count("where") > 0;
  if (parsed->count("json") > 0)
    std::cout << io::render_json(results, ranking);
  else if (are_parts_of_phases(results) && !asked)
    std::cout << parts_text(results, required(*parsed, "run"),
                            parsed->count("k") > 0 ? ranking.rows.size() : results.experiments.rows());
  else if (none_fits(results))
    std::cout << none_fits_text(results) << "`manyworlds explain SPEC.yaml --experiment ID` says what would fit\n";
  else
    std::cout << io::render_text(results, ranking);
  emit(*parsed, emit_options, results, ranking);
  return kExitDone;
}

}  // namespace

Command top_command() {
  return {.name = "top", .summary = "the best experiments of a run", .run = run_top};
}

}  // namespace manyworlds::farm::commands
