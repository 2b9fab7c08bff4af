// `manyworlds check LOG`: a real run's log beside the prediction of its experiment.
#include "farm/check/own_table.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "core/base/error.hpp"
#include "farm/check/check_report.hpp"
#include "farm/check/suggestions.hpp"
#include "farm/cli/options/job_options.hpp"
#include "farm/cli/options/one_experiment.hpp"
#include "farm/cli/options/own_options.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/sweep/single_run.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "io/ranking/top.hpp"

namespace manyworlds::farm::commands {

namespace {

using experiments::logs::TrainingLog;

/// No memory is larger: with it the step of a run that did fit is simulated although it was predicted not to.
constexpr double kAnyMemoryGib = 1'000'000;
constexpr std::size_t kIdDigits = 12;

/// Returns the dump of arguments in a log as a file of its own whose lines have the log's numbers.
experiments::jobs::JobFile arguments_of(const TrainingLog& log) {
  constexpr int kMaxEmptyLines = 1 << 20;
  const int before = std::clamp(log.arguments_line - 1, 0, kMaxEmptyLines);
  return {log.path, std::string(static_cast<std::size_t>(before), '\n') + log.arguments};
}

/// Reads SPEC, the job that --like names, or the one whose arguments the log has.
experiments::Sweep read_experiment(const cxxopts::ParseResult& parsed, const TrainingLog& log,
                                   std::vector<std::string>& explanation) {
  if (parsed.count("spec") > 0) {
    has_job(parsed);
    return one_experiment(parsed);
  }
  std::vector<std::string> set;
  if (parsed.count("set") > 0) set = parsed["set"].as<std::vector<std::string>>();
  apply_assume_option(parsed, set);
  if (parsed.count("like") == 0 && log.arguments.empty())
    throw core::InputError(
        "has no dump of Megatron-LM's arguments, so that nobody knows its experiment; give a SPEC.yaml, or the job's "
        "file with --like FILE",
        log.path);
  JobExperiment read =
      parsed.count("like") > 0 ? job_experiment(parsed, set) : job_experiment(parsed, set, arguments_of(log));
  explanation = experiments::jobs::explanation(read.job);
  return std::move(read.sweep);
}

std::optional<std::int64_t> skip_of(const cxxopts::ParseResult& parsed) {
  if (parsed.count("skip") == 0) return std::nullopt;
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::integer;
  info.minimum = 0;
  info.maximum = 1e9;
  return std::get<std::int64_t>(parse_option_value(parsed["skip"].as<std::string>(), info, "--skip"));
}

/// Returns the id of a run in the user's table: the same log of the same experiment replaces its row.
std::string own_id(const TrainingLog& log, const experiments::Settings& settings) {
  return std::filesystem::path(log.path).stem().string() + "-" +
         experiments::experiment_digest(settings).substr(0, kIdDigits);
}

/// Predicts the step and compares. Throws core::InputError if the simulation did not end.
CheckedRun check(const cxxopts::ParseResult& parsed, TrainingLog log, experiments::Sweep& sweep) {
  experiments::Experiment& experiment = sweep.experiments.front();
  CheckedRun run;
  run.matched = match_log(log, experiment, skip_of(parsed));
  run.memory = check_memory(log, experiment);
  const std::string id = own_id(log, experiment.settings);
  const experiments::Experiment asked = experiment;
  log.steps.clear();
  run.log = std::move(log);
  auto simulated = std::make_unique<SingleRun>(sweep);
  if (ResultRow{simulated->results().experiments}.text("status") == "out_of_memory") {
    run.predicted_to_fit = false;
    experiment.settings["cluster.gpu.memory_gib"] = kAnyMemoryGib;
    simulated = std::make_unique<SingleRun>(sweep);
  }
  const ResultRow row{simulated->results().experiments};
  if (!row.ran())
    throw core::InputError(fmt::format("the step cannot be predicted: {}: {}", row.text("status"), row.text("reason")));
  run.predicted_s = row.number("step_time_s");
  if (!row.text("step_time_basis").empty())
    check_interval(run, asked, experiments::Uncertainty::compiled(), read_own_table(own_table_of(parsed)), id);
  run.suggestions = suggestions_of(run, row, asked);
  experiment = asked;
  return run;
}

void learn_from(const CheckedRun& run, const experiments::Experiment& experiment, const std::filesystem::path& table) {
  if (!run.published)
    throw core::InputError("needs a step simulated packet by packet, and this one is a lower bound", "--learn");
  if (table.empty()) throw core::InputError("there is no table to learn into; give one with --learned FILE", "--learn");
  const std::string source =
      fmt::format("{} ({})", std::filesystem::path(run.log.path).filename().string(), run.log.framework);
  const experiments::OwnStep step{own_id(run.log, experiment.settings),
                                  source,
                                  experiments::experiment_digest(experiment.settings),
                                  run.basis.chip,
                                  run.basis.kind,
                                  experiment.settings.text("strategy.stack.name"),
                                  experiments::prediction_mark(),
                                  run.measured_s(),
                                  run.predicted_s};
  learn(table, step, experiment.settings, experiment.config());
  print_message("manyworlds: {} has the row {}\n", table.string(), step.id);
}

int run_check(const Invocation& invocation) {
  cxxopts::Options options("manyworlds check",
                           "A training run's log beside the prediction of its step: where it lies in the interval, and "
                           "what a difference suggests.");
  options.add_options()("log", "what the run printed: Megatron-LM, torchtitan, NeMo or DeepSpeed, also as .gz",
                        cxxopts::value<std::string>(), "LOG");
  add_experiment_options(options);
  add_job_options(options);
  options.add_options()("skip",
                        "leave out this many iterations of each start; default: those at its begin that are more than "
                        "10 % slower than the settled ones",
                        cxxopts::value<std::string>(), "N")("learn", "add the run to the table of --learned")(
      "strict", "end with 3 if the measured time is outside of the interval")("json", "the comparison as JSON");
  add_own_options(options);
  options.parse_positional({"log", "spec"});
  options.positional_help("LOG [SPEC.yaml]");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  TrainingLog log = experiments::logs::read_training_log(required(*parsed, "log"));
  std::vector<std::string> explanation;
  experiments::Sweep sweep = read_experiment(*parsed, log, explanation);
  const CheckedRun run = check(*parsed, std::move(log), sweep);
  if (parsed->count("json") > 0) {
    std::cout << check_json(run).dump(1) << "\n";
  } else {
    for (const std::string& line : explanation) std::cout << line << "\n";
    std::cout << check_text(run) << io::assumed_text(sweep.assumed);
  }
  if (parsed->count("learn") > 0) learn_from(run, sweep.experiments.front(), own_table_of(*parsed));
  const bool outside = run.interval() && run.interval()->place(run.measured_s()) != Place::inside;
  return parsed->count("strict") > 0 && outside ? kExitFailed : kExitDone;
}

}  // namespace

Command check_command() {
  return {.name = "check", .summary = "a real run's log beside its prediction", .run = run_check};
}

}  // namespace manyworlds::farm::commands
