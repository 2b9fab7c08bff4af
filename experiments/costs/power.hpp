// Power of GPUs by what they do, power of the machines around them, and the energy of a training step.
// docs/model/costs.md lists the assumptions.
#pragma once

#include <cstdint>

#include "core/base/options.hpp"
#include "core/step/run/result.hpp"

namespace manyworlds::experiments {

/// Power of a GPU. No simulation depends on it, so it is in no cache key. 0: not published.
struct GpuPower {
  double board_power_w = 0;  // rated power of the board, W: an upper bound while kernels run
  double idle_power_w = 0;   // while waiting, W
  /// Power while compute waits for communication, as a share of the range from idle to board power. A guess: an A100
  /// that is blocked on a peer draws 83.64 W (code of Perseus, Chung et al., SOSP 2024), which is 0.07 of the range for
  /// a board of 400 W and 0.15 for one of 300 W, and moving bytes takes more.
  double communication_power_share = 0.25;
  // Shares of the same range. Board power is an upper bound, idle power a lower one.
  double kernel_power_share = 1;     // while kernels of the model run
  double optimizer_power_share = 1;  // while kernels of the optimizer run, which move bytes
  double waiting_power_share = 0;    // while waiting for the host, copies, a pipeline neighbour or a straggler

  bool known() const { return board_power_w > 0 && idle_power_w > 0; }
};

const core::OptionTable<GpuPower>& power_options();

/// Power of a cluster without its GPUs, whatever they do. 0: not given.
struct MachinePower {
  double host_power_w = 0;         // one node without its GPUs: processors, memory, NICs, fans, W
  double switch_port_power_w = 0;  // one port of a network switch with its optics, W
  double pue = 0;                  // power usage effectiveness: power of the building over power of its machines
};

const core::OptionTable<MachinePower>& machine_power_options();

/// Power in W, or energy in J, by part of the machine; NaN if not known.
struct MachineParts {
  double gpus = 0, hosts = 0, network = 0;
  double sum() const { return gpus + hosts + network; }
};

/// Returns the power of `nodes` nodes and `switch_ports` ports of network switches, W; `gpus` is 0. A network without
/// ports draws nothing.
MachineParts machine_power_w(const MachinePower& power, std::int64_t nodes, std::int64_t switch_ports);

/// Returns the energy of a GPU in one step, J, given the mean breakdown of time over ranks; NaN if its power is not
/// known.
double gpu_energy_j(const core::step::Breakdown& breakdown, const GpuPower& power);

}  // namespace manyworlds::experiments
