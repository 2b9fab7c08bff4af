// `manyworlds stragglers`: simulates one experiment, measures it as a training run would measure itself, and names the
// ranks that delay the others.
#include <fmt/format.h>

#include <array>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/workload/layer/operators.hpp"
#include "experiments/analysis/stragglers.hpp"
#include "farm/cli/options/one_experiment.hpp"
#include "farm/cli/options/run_recording.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/sweep/single_run.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {
namespace {

using Json = nlohmann::ordered_json;
using RankOutlier = experiments::Outlier<core::step::RankId>;
using experiments::StragglerReport;

constexpr std::array<const char*, 3> kLevels{"L0", "L1", "L2"};

const char* level_of(const RankOutlier& one) {
  return kLevels.at(static_cast<std::size_t>(one.level));
}

experiments::MeasurementModel measuring_of(const cxxopts::ParseResult& parsed) {
  experiments::MeasurementModel result;
  result.seed = parsed["seed"].as<std::int64_t>();
  result.steps = parsed["steps"].as<std::int64_t>();
  result.noise = parsed["noise"].as<double>();
  result.slower = parsed["slower"].as<double>();
  if (result.steps < 1 || result.steps > 100'000)
    throw core::InputError(fmt::format("must be from 1 to 100000, not {}", result.steps), "--steps");
  if (!(result.noise >= 0 && result.noise <= 0.5))
    throw core::InputError(fmt::format("must be a share from 0 to 0.5, not {}", result.noise), "--noise");
  if (!(result.slower > 0 && result.slower <= 100))
    throw core::InputError(fmt::format("must be a share above 0 and at most 100, not {}", result.slower), "--slower");
  return result;
}

/// Returns the model throughput of a rank in TFLOP/s while its kernels run.
double throughput(const core::step::CompiledStep& compiled, double kernels_s) {
  const core::step::Configuration& configuration = compiled.configuration();
  const auto flops = static_cast<double>(core::workload::model_flops_per_sequence(configuration.model));
  return flops * static_cast<double>(configuration.strategy.global_batch) / compiled.layout().ranks() / kernels_s *
         1e-12;
}

std::string as_text(const StragglerReport& report, const core::step::CompiledStep& compiled,
                    const experiments::MeasurementModel& measurement) {
  const auto extreme = [&](double seconds, core::step::RankId rank) {
    const bool has_model = compiled.configuration().programs == nullptr;
    return fmt::format("{:.6f} s{} on rank {}", seconds,
                       has_model ? fmt::format(" ({:.1f} TFLOP/s of the model)", throughput(compiled, seconds)) : "",
                       rank);
  };
  std::string text =
      fmt::format("{} ranks, {} steps measured with {:g} % noise\nkernels of a step take from {} to {}\n",
                  compiled.layout().ranks(), measurement.steps, 100 * measurement.noise,
                  extreme(report.min_s, report.min_rank), extreme(report.max_s, report.max_rank));
  if (report.found.empty()) text += "no rank is slower than its peers\n";
  for (const experiments::Straggler& one : report.found) {
    text +=
        fmt::format("rank {} (gpu{}, node {}) is slow; beside the median of its peers:\n", one.rank, one.gpu, one.node);
    for (const RankOutlier& seen : one.seen)
      text += fmt::format("  {:<34}{:+.1f} %\n", seen.activity, 100 * seen.slower);
  }
  for (const std::string& activity : report.unexplained)
    text += fmt::format("slow, although none of its members is: {}\n", activity);
  for (const std::string& activity : report.not_compared) text += fmt::format("too few to compare: {}\n", activity);
  return text;
}

Json as_json(const StragglerReport& report, const core::step::CompiledStep& compiled,
             const experiments::MeasurementModel& measurement) {
  Json result{{"ranks", compiled.layout().ranks()},
              {"steps", measurement.steps},
              {"noise", measurement.noise},
              {"seed", measurement.seed},
              {"min_kernels_s", report.min_s},
              {"min_rank", report.min_rank.value()},
              {"max_kernels_s", report.max_s},
              {"max_rank", report.max_rank.value()},
              {"stragglers", Json::array()},
              {"unexplained", report.unexplained},
              {"too_few_to_compare", report.not_compared}};
  for (const experiments::Straggler& one : report.found) {
    Json seen = Json::array();
    for (const RankOutlier& each : one.seen)
      seen.push_back({{"level", level_of(each)}, {"what", each.activity}, {"slower", each.slower}});
    result["stragglers"].push_back(
        {{"rank", one.rank.value()}, {"gpu", one.gpu.value()}, {"node", one.node}, {"seen", seen}});
  }
  return result;
}

int run_stragglers(const Invocation& invocation) {
  cxxopts::Options options("manyworlds stragglers",
                           "Simulates one experiment, measures it as a training run would measure itself, and names "
                           "the ranks that hold the others up.");
  add_experiment_options(options);
  options.add_options()("seed", "of the noise", cxxopts::value<std::int64_t>()->default_value("1"), "N")(
      "steps", "that are measured; their median counts", cxxopts::value<std::int64_t>()->default_value("10"), "N")(
      "noise", "standard deviation of what is measured of a step, as a share",
      cxxopts::value<double>()->default_value("0.02"),
      "SHARE")("slower", "how much longer than the median of its peers something must take, as a share",
               cxxopts::value<double>()->default_value("0.1"), "SHARE")("json", "the verdict as JSON");
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const experiments::MeasurementModel measurement = measuring_of(*parsed);
  const experiments::Sweep sweep = one_experiment(*parsed);
  const experiments::ExperimentConfig config = sweep.experiments.front().config();
  const SingleRun run(sweep, parse_ranks("all", rank_numbers(config.configuration), "SPEC"));
  if (!run.recorded()) {
    print_message("manyworlds: the step did not run, so nothing can be measured; `manyworlds run` tells why\n");
    return kExitFailed;
  }
  const StragglerReport report =
      find_stragglers(run.compiled(), run.recording(), measurement,
                      config.timed_programs ? config.timed_programs->copied_from : experiments::ProgramsOfFile());
  std::cout << (parsed->count("json") > 0 ? as_json(report, run.compiled(), measurement).dump(1) + "\n"
                                          : as_text(report, run.compiled(), measurement));
  return kExitDone;
}

}  // namespace

Command stragglers_command() {
  return {.name = "stragglers",
          .summary = "finds slow ranks of one experiment from its simulated measurements",
          .run = run_stragglers};
}

}  // namespace manyworlds::farm::commands
