// Computes energy first, then money, then the whole run, each from the previous ones. Unknown values
// are NaN, and so is every sum that contains one.
#include "experiments/analysis/costs.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/units.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "experiments/costs/budget.hpp"
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

/// The training run: its steps, and its power while it trains, and while it waits for a checkpoint or
/// a restart, at the building's meter.
struct TrainingRun {
  double step_s = 0, tokens_per_step = 0;
  double training_w = 0, waiting_w = 0;
};

CheckpointPlan plan_of(const ExperimentConfig& config, double work_s) {
  return checkpoint_plan_of(config.training, static_cast<double>(checkpoint_bytes(config.configuration.model)),
                            static_cast<double>(config.cluster.nodes), static_cast<double>(config.cluster.gpus()),
                            work_s);
}

/// Returns the shares of a run of so many seconds of work. Only without checkpoints do they depend on its length.
RunShares shares_of(const ExperimentConfig& config, double work_s) {
  if (config.training.fails()) return plan_of(config, work_s).shares;
  return {1, 0, 0, 0};
}

void add_failures(Costs& costs, const ExperimentConfig& config, double work_s) {
  const Training& training = config.training;
  const CheckpointPlan plan = plan_of(config, work_s);
  costs.goodput = plan.shares.goodput;
  costs.rework_share = plan.shares.rework;
  costs.checkpointing_share = plan.shares.checkpointing;
  costs.restarting_share = plan.shares.restarting;
  if (training.checkpoint == CheckpointKind::none) return;
  const Failures failures =
      failures_of(training, static_cast<double>(config.cluster.nodes), static_cast<double>(config.cluster.gpus()));
  costs.goodput_first_order = first_order_goodput(plan.checkpoints, failures, plan.interval_s);
  costs.checkpoint_block_s = plan.checkpoints.block_s;
  costs.checkpoint_interval_s = plan.interval_s;
  costs.checkpoints_per_persist = static_cast<double>(plan.checkpoints.checkpoints_per_persist);
}

/// Time, energy (J) and money of a run of `work_s` seconds of steps.
struct RunCosts {
  double time_s = 0, energy_j = 0, usd = 0;
};

RunCosts run_costs(const ExperimentConfig& config, const TrainingRun& run, const RunShares& shares, double work_s) {
  const double time_s = work_s / shares.goodput, trains = shares.goodput + shares.rework;
  const double joules = time_s * (trains * run.training_w + (1 - trains) * run.waiting_w);
  return {time_s, joules, machine_cost_usd(config, time_s, joules)};
}

/// Returns the work that the budgets pay for.
double work_of_budget(const ExperimentConfig& config, const TrainingRun& run) {
  const bool depends_on_length = config.training.checkpoint == CheckpointKind::none;
  const RunShares shares = shares_of(config, 1);
  return work_within_budget(config.training, static_cast<double>(config.cluster.gpus()), [&](double work_s) {
    const RunCosts costs = run_costs(config, run, depends_on_length ? shares_of(config, work_s) : shares, work_s);
    return RunTotals{costs.time_s, costs.usd};
  });
}

void add_budget(Costs& costs, const ExperimentConfig& config, const TrainingRun& run, double work_s) {
  costs.budget_tokens = work_s / run.step_s * run.tokens_per_step;
  const std::optional<double> parameters = parameters_of_loss(config.training, config.configuration.model);
  if (parameters && costs.budget_tokens > 0)
    costs.budget_loss = predicted_loss(config.training.loss_law(), *parameters, costs.budget_tokens);
}

void add_run(Costs& costs, const ExperimentConfig& config, const TrainingRun& run) {
  const Training& training = config.training;
  double work_s = training.tokens > 0 ? run.step_s * training.tokens / run.tokens_per_step : Costs::kNone;
  if (training.has_budget()) {
    const double within = work_of_budget(config, run);
    add_budget(costs, config, run, within);
    if (training.tokens == 0) work_s = within;
  }
  const bool needs_work = training.checkpoint == CheckpointKind::none;
  if (training.fails() && (work_s > 0 || !needs_work)) add_failures(costs, config, work_s);
  if (!(work_s > 0)) return;
  const RunCosts totals = run_costs(config, run, shares_of(config, work_s), work_s);
  costs.train_time_s = totals.time_s;
  costs.train_energy_kwh = totals.energy_j / kJoulesPerKwh;
  costs.train_usd = totals.usd;
}

}  // namespace

std::int64_t switch_ports(const core::network::Graph& graph) {
  return std::count_if(graph.links.begin(), graph.links.end(), [&](const core::network::Link& link) {
    return graph.vertices[link.from] == core::network::VertexKind::network_switch;
  });
}

Costs costs_of(const ExperimentConfig& config, const core::step::StepResult& step, const core::network::Graph* graph) {
  Costs result;
  const double step_s = core::seconds(step.step_ps);
  const double tokens = core::step::tokens_per_step(config.configuration);

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

  TrainingRun run{step_s, tokens, pue * watts.sum(), 0};
  watts.gpus = idle_w(config);
  run.waiting_w = pue * watts.sum();
  add_run(result, config, run);
  return result;
}

}  // namespace manyworlds::experiments
