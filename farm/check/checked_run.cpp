#include "farm/check/checked_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "farm/texts/stage_footprints.hpp"

namespace manyworlds::farm {
namespace {

using experiments::logs::TrainingLog;

std::int64_t gpus_of(const core::workload::Strategy& strategy) {
  return strategy.tp * strategy.cp * strategy.pp * strategy.dp;
}

void require_same(const TrainingLog& log, std::int64_t said, std::int64_t expected, const char* what) {
  if (said > 0 && said != expected)
    throw core::InputError(
        fmt::format("is of another run than the experiment: it has {} {}, and the experiment {}", said, what, expected),
        log.path);
}

/// Returns whether a GPU's own name, "NVIDIA H200", has the beginning of its name in the catalog, "h200_sxm".
bool names_gpu(const std::string& device, const std::string& gpu) {
  std::string lower;
  for (const char c : device) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.find(gpu.substr(0, gpu.find('_'))) != std::string::npos;
}

}  // namespace

MatchedLog match_log(const TrainingLog& log, const experiments::Experiment& experiment,
                     std::optional<std::int64_t> skip) {
  const auto configuration = experiment.config().configuration;
  const auto& strategy = configuration.strategy;
  const std::int64_t batch = strategy.global_batch;
  require_same(log, log.gpus, gpus_of(strategy), "GPUs");
  require_same(log, log.sequence, configuration.model.sequence, "tokens a sequence");
  require_same(log, log.global_batch, batch, "sequences a step");
  MatchedLog result;
  TrainingLog same = log;
  result.other_batch =
      std::erase_if(same.steps, [&](const auto& one) { return one.global_batch > 0 && one.global_batch != batch; });
  if (same.steps.empty()) throw core::InputError(fmt::format("has no step of {} sequences", batch), log.path);
  result.steps = experiments::logs::statistics_of(
      experiments::logs::step_times(same, batch * configuration.model.sequence, batch, gpus_of(strategy)), skip);
  const std::string gpu = experiment.settings.text("cluster.gpu.name");
  if (!log.device.empty() && !names_gpu(log.device, gpu))
    result.notes.push_back(fmt::format("the log is of {}, and the experiment has {}", log.device, gpu));
  return result;
}

std::vector<CheckedMemory> check_memory(const TrainingLog& log, const experiments::Experiment& experiment) {
  CheckedMemory allocated{"allocated"}, reserved{"reserved"};
  for (const core::memory::Footprint& stage : stage_footprints(experiment.config().configuration)) {
    allocated.predicted = std::max(allocated.predicted, stage.allocated());
    reserved.predicted = std::max(reserved.predicted, stage.reserved());
  }
  const auto peak = log.peak();
  allocated.measured = peak.allocated;
  reserved.measured = peak.reserved;
  std::vector<CheckedMemory> result;
  for (const CheckedMemory& one : {allocated, reserved})
    if (one.measured > 0 && one.predicted > 0) result.push_back(one);
  return result;
}

void check_interval(CheckedRun& run, const experiments::Experiment& experiment,
                    const experiments::Uncertainty& uncertainty, const std::vector<experiments::OwnStep>& own,
                    const std::string& own_id) {
  const auto config = experiment.config();
  run.basis = uncertainty.with_guesses(experiment.settings, config);
  const double ratio = run.measured_s() / run.predicted_s;
  run.published = {run.predicted_s * run.basis.low, run.predicted_s * run.basis.high,
                   uncertainty.share_below(ratio, experiment.settings, config)};
  run.evidence = own_evidence(own, run.basis, experiment.settings.text("strategy.stack.name"), own_id);
  if (run.evidence.logs.empty()) return;
  const auto interval =
      own_interval(run.basis, uncertainty.scatter_within_families(experiment.settings, config), run.evidence.logs);
  run.own = {run.predicted_s * interval.low, run.predicted_s * interval.high, interval.share_below(ratio)};
}

}  // namespace manyworlds::farm
