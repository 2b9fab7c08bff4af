// `manyworlds stragglers`: simulates one experiment, measures it as a training run would measure itself, and names the
// ranks that hold the others up.
#include <fmt/format.h>

#include <array>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/workload/layer/operators.hpp"
#include "experiments/analysis/stragglers.hpp"
#include "farm/cli/one_experiment.hpp"
#include "farm/cli/run_recording.hpp"
#include "farm/sweep/single_run.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/talk.hpp"
#include "farm/verbs/verbs.hpp"

namespace manyworlds::farm::commands {
namespace {

using Json = nlohmann::ordered_json;
using experiments::Outlier;
using experiments::StragglerReport;

constexpr std::array<const char*, 3> kLevels{"L0", "L1", "L2"};

const char* level_of(const Outlier& one) {
  return kLevels.at(static_cast<std::size_t>(one.level));
}

experiments::Measuring measuring_of(const cxxopts::ParseResult& parsed) {
  experiments::Measuring made;
  made.seed = parsed["seed"].as<std::int64_t>();
  made.steps = parsed["steps"].as<std::int64_t>();
  made.noise = parsed["noise"].as<double>();
  made.slower = parsed["slower"].as<double>();
  if (made.steps < 1 || made.steps > 100'000)
    throw core::InputError(fmt::format("must be from 1 to 100000, not {}", made.steps), "--steps");
  if (!(made.noise >= 0 && made.noise <= 0.5))
    throw core::InputError(fmt::format("must be a share from 0 to 0.5, not {}", made.noise), "--noise");
  if (!(made.slower > 0 && made.slower <= 100))
    throw core::InputError(fmt::format("must be a share above 0 and at most 100, not {}", made.slower), "--slower");
  return made;
}

/// TFLOP/s of the model on a rank, while its kernels run.
double throughput(const core::step::World& world, double kernels_s) {
  const core::step::Configuration& of = world.configuration();
  const auto flops = static_cast<double>(core::workload::model_flops_per_sequence(of.model));
  return flops * static_cast<double>(of.strategy.global_batch) / world.layout().ranks() / kernels_s * 1e-12;
}

std::string as_text(const StragglerReport& report, const core::step::World& world,
                    const experiments::Measuring& measuring) {
  std::string text = fmt::format(
      "{} ranks, {} steps measured with {:g} % noise\n"
      "MnRtt/Rnk: {:.6f}s/{} | MxRtt/Rnk: {:.6f}s/{} | MnEtpt/Rnk: {:.2f}TF/{} | MxEtpt/Rnk: {:.2f}TF/{}\n",
      world.layout().ranks(), measuring.steps, 100 * measuring.noise, report.least_s, report.least_rank, report.most_s,
      report.most_rank, throughput(world, report.most_s), report.most_rank, throughput(world, report.least_s),
      report.least_rank);
  if (report.found.empty()) text += "no rank is slower than its peers\n";
  for (const experiments::Straggler& one : report.found) {
    text += fmt::format("rank {} (gpu{}, node {}) is slow\n", one.rank, one.gpu, one.node);
    for (const Outlier& seen : one.seen)
      text += fmt::format("  {}  {:<34}{:+.1f} %\n", level_of(seen), seen.what, 100 * seen.slower);
  }
  for (const std::string& what : report.unexplained) text += fmt::format("slow, and no member of it is: {}\n", what);
  for (const std::string& what : report.alone) text += fmt::format("too few to compare: {}\n", what);
  return text;
}

Json as_json(const StragglerReport& report, const core::step::World& world, const experiments::Measuring& measuring) {
  Json made{{"ranks", world.layout().ranks()},   {"steps", measuring.steps},
            {"noise", measuring.noise},          {"seed", measuring.seed},
            {"least_kernels_s", report.least_s}, {"least_rank", report.least_rank},
            {"most_kernels_s", report.most_s},   {"most_rank", report.most_rank},
            {"stragglers", Json::array()},       {"unexplained", report.unexplained},
            {"too_few_to_compare", report.alone}};
  for (const experiments::Straggler& one : report.found) {
    Json seen = Json::array();
    for (const Outlier& each : one.seen)
      seen.push_back({{"level", level_of(each)}, {"what", each.what}, {"slower", each.slower}});
    made["stragglers"].push_back({{"rank", one.rank}, {"gpu", one.gpu}, {"node", one.node}, {"seen", seen}});
  }
  return made;
}

}  // namespace

int run_stragglers(const Invocation& invocation) {
  cxxopts::Options options("manyworlds stragglers",
                           "Simulates one experiment, measures it as a training run would measure itself, and names "
                           "the ranks that hold the others up.");
  add_experiment_words(options);
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
  const experiments::Measuring measuring = measuring_of(*parsed);
  const experiments::Sweep sweep = one_experiment(*parsed);
  const auto strategy = experiments::world_of(sweep.experiments.front().settings, sweep.inputs).configuration.strategy;
  const SingleRun run(sweep, ranks_named("all", strategy, "SPEC"));
  if (!run.recorded()) {
    tell("manyworlds: the step did not run, so nothing can be measured; `manyworlds run` tells why\n");
    return kExitFailed;
  }
  const StragglerReport report = find_stragglers(run.world(), run.recording(), measuring);
  std::cout << (parsed->count("json") > 0 ? as_json(report, run.world(), measuring).dump(1) + "\n"
                                          : as_text(report, run.world(), measuring));
  return kExitDone;
}

}  // namespace manyworlds::farm::commands
