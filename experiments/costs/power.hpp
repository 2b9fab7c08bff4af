// What a GPU draws while it does what, and what is drawn around it: the energy of a training step. docs/model.md tells
// what is assumed.
#pragma once

#include <cstdint>

#include "core/base/options.hpp"
#include "core/step/run/result.hpp"

namespace manyworlds::experiments {

/// Figures of the GPU that no simulation depends on, so they are in no key. Absent (0) where nobody publishes them.
struct GpuPower {
  double board_power_w = 0;  // what the board is built for: an upper bound of what it draws while kernels run, W
  double idle_power_w = 0;   // while it waits, W
  /// What it draws while compute waits for communication, as a share of the way from idle to board power. A guess:
  /// an A100 that is blocked on a peer draws 83.64 W (code of Perseus, Chung et al., SOSP 2024), which is 0.07 of the
  /// way on a board of 400 W and 0.15 on one of 300 W, and moving bytes takes more.
  double communication_power_share = 0.25;
  // Shares of the same way. Board power is an upper bound, idle power a lower one.
  double kernel_power_share = 1;     // while kernels of the model run
  double optimizer_power_share = 1;  // while the optimizer's do, which move bytes
  double waiting_power_share = 0;    // while it waits for its host, a neighbour or a straggler

  bool known() const { return board_power_w > 0 && idle_power_w > 0; }
};

const core::OptionTable<GpuPower>& power_options();

/// What a cluster draws beside its GPUs, whatever they do. Absent (0) until given.
struct MachinePower {
  double host_power_w = 0;         // one node without its GPUs: processors, memory, NICs, fans, W
  double switch_port_power_w = 0;  // one port of a network switch with its optics, W
  double pue = 0;                  // power usage effectiveness: what the building draws over what its machines do
};

const core::OptionTable<MachinePower>& machine_power_options();

/// What parts of a machine draw, W, or an energy, J; NaN where a figure is not known.
struct Parts {
  double gpus = 0, hosts = 0, network = 0;
  double sum() const { return gpus + hosts + network; }
};

/// Of `nodes` and `switch_ports` ports of network switches, W; gpus stays 0. A network without ports draws nothing.
Parts machine_power_w(const MachinePower& power, std::int64_t nodes, std::int64_t switch_ports);

/// Joules that a GPU draws in one step whose mean rank spends its time so; NaN where its power is not known.
double gpu_energy_j(const core::step::Breakdown& breakdown, const GpuPower& power);

}  // namespace manyworlds::experiments
