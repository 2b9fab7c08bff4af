// Computes energy first, then money, then the whole run, each from the previous ones. Unknown values
// are NaN, and so is every sum that contains one.
#include "experiments/analysis/costs.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/units.hpp"
#include "experiments/costs/price.hpp"

namespace manyworlds::experiments {
namespace {

/// Returns the energy of all GPUs in one step. The breakdown by machine kind is known only for steps that were
/// simulated.
double gpus_energy_j(const ExperimentConfig& config, const core::step::StepResult& step) {
  if (config.machines.empty())
    return static_cast<double>(config.cluster.gpus()) * gpu_energy_j(step.breakdown, config.power);
  double sum = 0;
  for (std::size_t kind = 0; kind < config.machines.size(); ++kind) {
    const MachineKind& subject = config.machines[kind];
    const auto& breakdown = step.by_kind.empty() ? step.breakdown : step.by_kind.at(kind);
    if (subject.gpus > 0) sum += static_cast<double>(subject.gpus) * gpu_energy_j(breakdown, subject.power);
  }
  return sum;
}

double idle_w(const ExperimentConfig& config) {
  const auto total_idle_w = [](std::int64_t gpus, const GpuPower& power) {
    if (gpus == 0) return 0.0;
    return power.known() ? static_cast<double>(gpus) * power.idle_power_w : Costs::kNone;
  };
  if (config.machines.empty()) return total_idle_w(config.cluster.gpus(), config.power);
  double sum = 0;
  for (const MachineKind& kind : config.machines) sum += total_idle_w(kind.gpus, kind.power);
  return sum;
}

/// Returns the power of nodes of several kinds.
double hosts_w(const ExperimentConfig& config) {
  double sum = 0;
  for (const MachineKind& kind : config.machines) {
    const double nodes = static_cast<double>(kind.gpus) / static_cast<double>(config.cluster.gpus_per_node);
    if (kind.gpus > 0) sum += kind.node.host_power_w > 0 ? nodes * kind.node.host_power_w : Costs::kNone;
  }
  return sum;
}

/// Returns the cost of all GPUs for `time_s` seconds and `joules` at the building's meter.
double machine_cost_usd(const ExperimentConfig& config, double time_s, double joules) {
  const auto gpus = static_cast<double>(config.cluster.gpus());
  if (config.machines.empty())
    return cost_usd(config.cluster.usd_per_gpu_hour, config.price, gpus * time_s / 3600, joules);
  double sum = 0;
  for (const MachineKind& kind : config.machines) {
    if (kind.gpus == 0) continue;
    Price price = config.price;
    price.usd_per_gpu = kind.node.usd_per_gpu;
    const auto share = static_cast<double>(kind.gpus);
    sum += cost_usd(kind.node.usd_per_gpu_hour, price, share * time_s / 3600, joules * share / gpus);
  }
  return sum;
}

/// The training run: its power while it trains, and while it waits for a checkpoint or a restart.
struct TrainingRun {
  double gpus = 0, work_s = 0;
  double training_w = 0, waiting_w = 0;  // at the building's meter
};

void add_failures(Costs& costs, const ExperimentConfig& config, double gpus, double work_s) {
  const Training& training = config.training;
  const auto bytes = static_cast<double>(checkpoint_bytes(config.configuration.model));
  const auto nodes = static_cast<double>(config.cluster.nodes);
  const CheckpointPlan plan = checkpoint_plan_of(training, bytes, nodes, gpus, work_s);
  costs.goodput = plan.shares.goodput;
  costs.rework_share = plan.shares.rework;
  costs.checkpointing_share = plan.shares.checkpointing;
  costs.restarting_share = plan.shares.restarting;
  if (training.checkpoint == CheckpointKind::none) return;
  costs.goodput_first_order =
      first_order_goodput(plan.checkpoints, failures_of(training, nodes, gpus), plan.interval_s);
  costs.checkpoint_block_s = plan.checkpoints.block_s;
  costs.checkpoint_interval_s = plan.interval_s;
  costs.checkpoints_per_persist = static_cast<double>(plan.checkpoints.checkpoints_per_persist);
}

void add_run(Costs& costs, const ExperimentConfig& config, const TrainingRun& run) {
  const Training& training = config.training;
  const bool needs_work = training.checkpoint == CheckpointKind::none;
  if (training.fails() && (training.tokens > 0 || !needs_work)) add_failures(costs, config, run.gpus, run.work_s);
  if (training.tokens == 0) return;
  costs.train_time_s = training.fails() ? run.work_s / costs.goodput : run.work_s;
  const double trains = training.fails() ? costs.goodput + costs.rework_share : 1;
  const double joules = costs.train_time_s * (trains * run.training_w + (1 - trains) * run.waiting_w);
  costs.train_energy_kwh = joules / kJoulesPerKwh;
  costs.train_usd = machine_cost_usd(config, costs.train_time_s, joules);
}

}  // namespace

std::int64_t switch_ports(const core::network::Graph& graph) {
  return std::count_if(graph.links.begin(), graph.links.end(), [&](const core::network::Link& link) {
    return graph.vertices[link.from] == core::network::VertexKind::network_switch;
  });
}

Costs costs_of(const ExperimentConfig& config, const core::step::StepResult& step, const core::network::Graph* graph) {
  Costs result;
  const core::step::Configuration& subject = config.configuration;
  const auto gpus = static_cast<double>(config.cluster.gpus());
  const double step_s = core::seconds(step.step_ps);
  const double tokens =
      static_cast<double>(subject.strategy.global_batch) * static_cast<double>(subject.model.sequence);

  const bool networked = config.cluster.nodes > 1;
  MANYWORLDS_CHECK(graph != nullptr || !networked || config.machine_power.switch_port_power_w == 0,
                   "{} nodes without their graph", config.cluster.nodes);
  const std::int64_t ports = !networked         ? 0
                             : graph != nullptr ? switch_ports(*graph)
                                                : 1;  // any number above 0: the power of a port is not known
  MachineParts watts = machine_power_w(config.machine_power, config.cluster.nodes, ports);
  watts.gpus = gpus_energy_j(config, step) / step_s;
  if (!config.machines.empty()) watts.hosts = hosts_w(config);
  result.gpu_energy_per_token_j = watts.gpus * step_s / tokens;
  result.host_energy_per_token_j = watts.hosts * step_s / tokens;
  result.network_energy_per_token_j = watts.network * step_s / tokens;
  const double pue = config.machine_power.pue > 0 ? config.machine_power.pue : Costs::kNone;
  result.energy_per_step_j = pue * watts.sum() * step_s;
  result.energy_per_token_j = result.energy_per_step_j / tokens;
  result.usd_per_million_tokens = machine_cost_usd(config, step_s, result.energy_per_step_j) / tokens * 1e6;

  TrainingRun run{gpus, step_s * config.training.tokens / tokens, pue * watts.sum(), 0};
  watts.gpus = idle_w(config);
  run.waiting_w = pue * watts.sum();
  add_run(result, config, run);
  return result;
}

}  // namespace manyworlds::experiments
