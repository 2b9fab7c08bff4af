// Cost of a step, a token and a whole training run in energy, money and time, from the step's result and values that no
// simulation depends on. docs/model/costs.md lists what is counted.
#pragma once

#include <cstdint>
#include <limits>

#include "core/step/run/result.hpp"
#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

/// Members are NaN if a value that they follow from is missing.
struct Costs {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double gpu_energy_per_token_j = kNone, host_energy_per_token_j = kNone, network_energy_per_token_j = kNone;
  double energy_per_token_j = kNone, energy_per_step_j = kNone;  // at the building's meter
  double usd_per_million_tokens = kNone;                         // of the step alone, without failures and checkpoints

  double goodput = kNone, rework_share = kNone, checkpointing_share = kNone, restarting_share = kNone;
  double goodput_first_order = kNone;
  double checkpoint_block_s = kNone, checkpoint_interval_s = kNone;
  double checkpoints_per_persist = kNone;
  double train_time_s = kNone, train_energy_kwh = kNone, train_usd = kNone;
  double budget_tokens = kNone, budget_loss = kNone;  // what the training run's budget leads to
};

/// Returns the costs of a step of `config`. `graph` may be null for a single node, which has no network, and if
/// switch_port_power_w is not known.
Costs costs_of(const ExperimentConfig& config, const core::step::StepResult& step, const core::network::Graph* graph);

/// Returns the number of cable ends at network switches.
std::int64_t switch_ports(const core::network::Graph& graph);

}  // namespace manyworlds::experiments
