// What a step, a token and a whole training run cost in energy, money and time, from the step's result and figures
// that no simulation depends on. docs/model.md tells what is counted.
#pragma once

#include <cstdint>
#include <limits>

#include "core/step/run/result.hpp"
#include "experiments/config/world.hpp"

namespace manyworlds::experiments {

/// NaN where a figure is missing that one follows from.
struct Costs {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double gpu_energy_per_token_j = kNone, host_energy_per_token_j = kNone, network_energy_per_token_j = kNone;
  double energy_per_token_j = kNone, energy_per_step_j = kNone;  // with what the building adds
  double usd_per_million_tokens = kNone;                         // of the step, without failures and checkpoints

  double goodput = kNone, repeated_share = kNone, checkpointing_share = kNone, restarting_share = kNone;
  double goodput_first_order = kNone;
  double checkpoint_block_s = kNone, checkpoint_interval_s = kNone;
  double persist_every = kNone;
  double train_time_s = kNone, train_energy_kwh = kNone, train_usd = kNone;
};

/// Of a step of `world`. Its graph may be null for one node, which needs no network, and where switch_port_power_w is
/// not known.
Costs costs_of(const World& world, const core::step::StepResult& step, const core::network::Graph* graph);

/// Ends of cables at network switches.
std::int64_t switch_ports(const core::network::Graph& graph);

}  // namespace manyworlds::experiments
