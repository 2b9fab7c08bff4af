// Energy first, then money, then the whole run, each from those before it.
#include "experiments/analysis/costs.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/units.hpp"

namespace manyworlds::experiments {
namespace {

constexpr double kJoulesOfKwh = 3.6e6;

/// Of all GPUs in one step. What ranks on another kind of machine do is known of a step that ran.
double gpus_energy_j(const World& world, const core::step::StepResult& step) {
  if (world.machines.empty())
    return static_cast<double>(world.cluster.gpus()) * gpu_energy_j(step.breakdown, world.power);
  double sum = 0;
  for (std::size_t kind = 0; kind < world.machines.size(); ++kind) {
    const MachineKind& of = world.machines[kind];
    const auto& breakdown = step.by_kind.empty() ? step.breakdown : step.by_kind.at(kind);
    if (of.gpus > 0) sum += static_cast<double>(of.gpus) * gpu_energy_j(breakdown, of.power);
  }
  return sum;
}

double idle_w(const World& world) {
  const auto all = [](std::int64_t gpus, const GpuPower& power) {
    if (gpus == 0) return 0.0;
    return power.known() ? static_cast<double>(gpus) * power.idle_power_w : Costs::kNone;
  };
  if (world.machines.empty()) return all(world.cluster.gpus(), world.power);
  double sum = 0;
  for (const MachineKind& kind : world.machines) sum += all(kind.gpus, kind.power);
  return sum;
}

/// Of nodes of several kinds.
double hosts_w(const World& world) {
  double sum = 0;
  for (const MachineKind& kind : world.machines) {
    const double nodes = static_cast<double>(kind.gpus) / static_cast<double>(world.cluster.gpus_per_node);
    if (kind.gpus > 0) sum += kind.node.host_power_w > 0 ? nodes * kind.node.host_power_w : Costs::kNone;
  }
  return sum;
}

/// For all GPUs for so long, with the building's joules.
double usd_of(const World& world, double time_s, double joules) {
  const auto gpus = static_cast<double>(world.cluster.gpus());
  if (world.machines.empty()) return usd(world.cluster.usd_per_gpu_hour, world.price, gpus * time_s / 3600, joules);
  double sum = 0;
  for (const MachineKind& kind : world.machines) {
    if (kind.gpus == 0) continue;
    Price price = world.price;
    price.usd_per_gpu = kind.node.usd_per_gpu;
    const auto share = static_cast<double>(kind.gpus);
    sum += usd(kind.node.usd_per_gpu_hour, price, share * time_s / 3600, joules * share / gpus);
  }
  return sum;
}

/// The run as it goes: what it draws while it trains, and while it waits for a checkpoint or a restart.
struct Run {
  double gpus = 0, work_s = 0;
  double training_w = 0, waiting_w = 0;  // of the building
};

void add_failures(Costs& to, const World& world, double gpus, double work_s) {
  const Training& training = world.training;
  const auto bytes = static_cast<double>(checkpoint_bytes(world.configuration.model));
  const auto nodes = static_cast<double>(world.cluster.nodes);
  const CheckpointPlan plan = plan_of(training, bytes, nodes, gpus, work_s);
  to.goodput = plan.shares.goodput;
  to.repeated_share = plan.shares.repeated;
  to.checkpointing_share = plan.shares.checkpointing;
  to.restarting_share = plan.shares.restarting;
  if (training.checkpoint == CheckpointKind::none) return;
  to.goodput_first_order = first_order_goodput(plan.checkpoints, failures_of(training, nodes, gpus), plan.interval_s);
  to.checkpoint_block_s = plan.checkpoints.block_s;
  to.checkpoint_interval_s = plan.interval_s;
  to.persist_every = static_cast<double>(plan.checkpoints.persist_every);
}

void add_run(Costs& to, const World& world, const Run& run) {
  const Training& training = world.training;
  const bool needs_work = training.checkpoint == CheckpointKind::none;
  if (training.fails() && (training.tokens > 0 || !needs_work)) add_failures(to, world, run.gpus, run.work_s);
  if (training.tokens == 0) return;
  to.train_time_s = training.fails() ? run.work_s / to.goodput : run.work_s;
  const double trains = training.fails() ? to.goodput + to.repeated_share : 1;
  const double joules = to.train_time_s * (trains * run.training_w + (1 - trains) * run.waiting_w);
  to.train_energy_kwh = joules / kJoulesOfKwh;
  to.train_usd = usd_of(world, to.train_time_s, joules);
}

}  // namespace

std::int64_t switch_ports(const core::network::Graph& graph) {
  return std::count_if(graph.links.begin(), graph.links.end(), [&](const core::network::Link& link) {
    return graph.vertices[link.from] == core::network::VertexKind::network_switch;
  });
}

Costs costs_of(const World& world, const core::step::StepResult& step, const core::network::Graph* graph) {
  Costs made;
  const core::step::Configuration& of = world.configuration;
  const auto gpus = static_cast<double>(world.cluster.gpus());
  const double step_s = core::seconds(step.step_ps);
  const double tokens = static_cast<double>(of.strategy.global_batch) * static_cast<double>(of.model.sequence);

  const bool networked = world.cluster.nodes > 1;
  MANYWORLDS_CHECK(graph != nullptr || !networked || world.machine_power.switch_port_power_w == 0,
                   "{} nodes without their graph", world.cluster.nodes);
  const std::int64_t ports = !networked         ? 0
                             : graph != nullptr ? switch_ports(*graph)
                                                : 1;  // unknown power of 1 or more
  Parts watts = machine_power_w(world.machine_power, world.cluster.nodes, ports);
  watts.gpus = gpus_energy_j(world, step) / step_s;
  if (!world.machines.empty()) watts.hosts = hosts_w(world);
  made.gpu_energy_per_token_j = watts.gpus * step_s / tokens;
  made.host_energy_per_token_j = watts.hosts * step_s / tokens;
  made.network_energy_per_token_j = watts.network * step_s / tokens;
  const double pue = world.machine_power.pue > 0 ? world.machine_power.pue : Costs::kNone;
  made.energy_per_step_j = pue * watts.sum() * step_s;
  made.energy_per_token_j = made.energy_per_step_j / tokens;
  made.usd_per_million_tokens = usd_of(world, step_s, made.energy_per_step_j) / tokens * 1e6;

  Run run{gpus, step_s * world.training.tokens / tokens, pue * watts.sum(), 0};
  watts.gpus = idle_w(world);
  run.waiting_w = pue * watts.sum();
  add_run(made, world, run);
  return made;
}

}  // namespace manyworlds::experiments
