// Configurations of experiments, and the objectives of a sweep.
#include "experiments/sweep/experiment.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/key_contents/named_tables.hpp"

namespace manyworlds::experiments {

std::shared_ptr<const core::compute::MeasuredTimes> measured_times(const Experiment& experiment) {
  return measured_times(experiment.settings, experiment.inputs ? *experiment.inputs : Inputs{});
}

core::step::Configuration configure(const Experiment& experiment, GraphCache& graphs) {
  ConfigReader reader;
  return configure(experiment, graphs, reader);
}

core::step::Configuration configure(const Experiment& experiment, GraphCache& graphs, ConfigReader& reader) {
  const ExperimentConfig& config = reader.read(experiment.settings, experiment.inputs);
  core::step::Configuration configuration = config.configuration;
  configuration.graph = graphs.get(config);
  configuration.failures = failures_of(config.faults, *configuration.graph);
  configuration.gpu.measured = measured_times(experiment);
  return configuration;
}

const std::vector<Objective>& objectives() {
  static const std::vector<std::vector<std::string>> budgets{
      {"training.budget_gpu_days"}, {"training.budget_usd"}, {"training.budget_days"}};
  static const std::vector<Objective> all{
      {"tokens_per_s_per_gpu", true},
      {"step_time_s", false},
      {"mfu", true},
      {"memory_peak_bytes", false, {}, false},
      {"gpu_energy_per_token_j", false, {{"cluster.gpu.board_power_w", "cluster.gpu.idle_power_w"}}},
      {"energy_per_token_j",
       false,
       {{"cluster.gpu.board_power_w", "cluster.gpu.idle_power_w", "cluster.host_power_w", "cluster.pue"}}},
      {"usd_per_million_tokens", false, {{"cluster.usd_per_gpu_hour"}, {"cluster.usd_per_gpu"}}},
      {"goodput", true, {{"training.node_mtbf_hours"}, {"training.gpu_mtbf_hours"}}, false},
      {"train_time_s", false, {{"training.tokens"}}},
      {"train_energy_kwh", false, {{"training.tokens", "cluster.host_power_w", "cluster.pue"}}},
      {"train_usd",
       false,
       {{"training.tokens", "cluster.usd_per_gpu_hour"}, {"training.tokens", "cluster.usd_per_gpu"}}},
      {"budget_tokens", true, budgets},
      {"budget_loss", false, budgets}};
  return all;
}

const Objective& objective_named(const std::string& name) {
  const auto found =
      std::find_if(objectives().begin(), objectives().end(), [&](const Objective& one) { return one.name == name; });
  MANYWORLDS_CHECK(found != objectives().end(), "no objective is called {}", name);
  return *found;
}

}  // namespace manyworlds::experiments
