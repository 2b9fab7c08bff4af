// `manyworlds ramp RUN --tokens D --batch B`: how the batch should grow over a training, from the step times of a sweep
// over batches.
#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/model/model.hpp"
#include "experiments/text/text.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/ramp/ramp_report.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm::commands {

namespace {

constexpr std::int64_t kBatchLimit = 16'777'216;
constexpr double kParametersLimit = 1e18;

double number_option(const cxxopts::ParseResult& parsed, const std::string& option, double most, const char* example) {
  const std::string text = parsed[option].as<std::string>();
  const auto value = core::number_in<double>(text);
  if (!value || !(*value >= 1) || *value > most)
    throw core::InputError(fmt::format("must be a number from 1 to {:g}, as in {}, not '{}'", most, example, text),
                           "--" + option);
  return *value;
}

/// Returns the parameters of a run's model without embeddings, as the law counts them (Kaplan et al. 2020, section
/// 2.1): neither tables of tokens, the output layer's included, nor of positions.
double parameters_of(const std::string& run, std::int64_t id) {
  if (!io::is_run_directory(run))
    throw core::InputError(
        "holds no settings, and the law of critical batches needs the model's parameters without "
        "embeddings: name the run directory, or add them, as in --parameters 1.2e9",
        run);
  const core::workload::Model model = experiment_of_run(run, id).config().configuration.model;
  if (model.has_experts())
    throw core::InputError(
        "the model has experts, and the law of critical batches is of dense ones: measure them for --critical, or say "
        "what counts, as in --parameters 1.2e9",
        run);
  const std::int64_t tables = model.vocabulary * model.hidden * (model.tied_embeddings ? 1 : 2);
  const std::int64_t positions =
      model.position == core::workload::Position::learned ? model.sequence * model.hidden : 0;
  return static_cast<double>(core::workload::model_parameters(model) - tables - positions);
}

ramp::RampQuestion question_of(const cxxopts::ParseResult& parsed) {
  ramp::RampQuestion question;
  for (const auto& [option, example] : {std::pair("tokens", "--tokens 300e9"), {"batch", "--batch 512"}})
    if (parsed.count(option) == 0)
      throw core::InputError(fmt::format("is missing: what is to be reached is said by a number of tokens and a fixed "
                                         "batch that reach it, as in {}",
                                         example),
                             std::string("--") + option);
  question.tokens = number_option(parsed, "tokens", ramp::kTokensLimit, "300e9");
  question.batch = parsed["batch"].as<std::int64_t>();
  if (question.batch < 1 || question.batch > kBatchLimit)
    throw core::InputError(fmt::format("must be from 1 to {} samples, not {}", kBatchLimit, question.batch), "--batch");
  if (parsed.count("restart") > 0)
    question.restart_s = static_cast<double>(parse_duration(parsed["restart"].as<std::string>(), "--restart").count());
  if (parsed.count("critical") > 0) {
    question.critical_name = required(parsed, "critical");
    question.critical =
        ramp::parse_critical_file(experiments::import::read_text(question.critical_name), question.critical_name);
  }
  if (parsed.count("parameters") > 0) {
    if (!question.critical.points.empty())
      throw core::InputError("is of the law, which the points of --critical take the place of", "--parameters");
    question.parameters = number_option(parsed, "parameters", kParametersLimit, "1.2e9");
  }
  return question;
}

int run_ramp(const Invocation& invocation) {
  cxxopts::Options options(
      "manyworlds ramp",
      "How the batch should grow over a training: which batches, in which layouts, reach soonest the loss that a fixed "
      "batch reaches, by critical batches (Kaplan et al. 2020) and the step times of a sweep over "
      "strategy.global_batch.");
  options.add_options()("run", "a run directory or its results.h5", cxxopts::value<std::string>())(
      "tokens", "the loss is the one that so many tokens reach", cxxopts::value<std::string>(), "D")(
      "batch", "with this fixed batch, in samples a step", cxxopts::value<std::int64_t>(), "B")(
      "where", "only these experiments, as in 'strategy.tp == 8'", cxxopts::value<std::string>()->default_value(""),
      "CONDITION")("restart", "what a change of the layout loses, as in 5m: checkpoint, restart",
                   cxxopts::value<std::string>(), "TIME")(
      "critical", "a YAML file of measured critical batches, or of the law's constants: docs/decisions.md",
      cxxopts::value<std::string>(),
      "FILE")("parameters", "of the model without embeddings, for the law; default: what the run says",
              cxxopts::value<std::string>(), "N")("json", "the schedules, times in seconds, as JSON");
  options.parse_positional({"run"});
  options.positional_help("RUN");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::string run = required(*parsed, "run");
  ramp::RampQuestion question = question_of(*parsed);
  question.results = io::results_path(run).string();
  ramp::SimulatedBatches batches = ramp::simulated_batches(io::read_results(question.results),
                                                           (*parsed)["where"].as<std::string>(), question.results);
  if (static_cast<double>(question.batch) * batches.tokens_per_sample > question.tokens)
    throw core::InputError(
        fmt::format("{} tokens are fewer than one step of {} samples has", question.tokens, question.batch),
        "--tokens");
  if (question.critical.points.empty() && question.parameters == 0)
    question.parameters = parameters_of(run, batches.candidates.front().id);
  const ramp::RampReport report = ramp::decide_ramp(std::move(question), std::move(batches));
  std::cout << (parsed->count("json") > 0 ? report.json() : report.text());
  return kExitDone;
}

}  // namespace

Command ramp_command() {
  return {.name = "ramp", .summary = "batches that grow over a training", .run = run_ramp};
}

}  // namespace manyworlds::farm::commands
