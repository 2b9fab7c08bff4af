// What a GPU draws while it does what: a first model of the energy of a training step. Hosts, switches and cooling are
// not in it. docs/model.md tells what is assumed.
#pragma once

#include "core/options.hpp"
#include "core/step/result.hpp"

namespace manyworlds::experiments {

/// Figures of the GPU that no simulation depends on, so they are in no key. Absent (0) where nobody publishes them.
struct GpuPower {
  double board_power_w = 0;  // what the board is built for: an upper bound of what it draws while kernels run, W
  double idle_power_w = 0;   // while it waits, W
  /// What it draws while compute waits for communication, as a share of the way from idle to board power. A guess:
  /// an A100 that is blocked on a peer draws 83.64 W (code of Perseus, Chung et al., SOSP 2024), which is 0.07 of the
  /// way on a board of 400 W and 0.15 on one of 300 W, and moving bytes takes more.
  double communication_power_share = 0.25;

  bool known() const { return board_power_w > 0 && idle_power_w > 0; }
};

const core::OptionTable<GpuPower>& power_options();

/// Joules that a GPU draws in one step whose mean rank spends its time so; NaN where its power is not known.
double gpu_energy_j(const core::step::Breakdown& breakdown, const GpuPower& power);

}  // namespace manyworlds::experiments
