// Power times time, part by part of a step.
#include "experiments/power.hpp"

#include <limits>

namespace manyworlds::experiments {

using core::option;

const core::OptionTable<GpuPower>& power_options() {
  static const core::OptionTable<GpuPower> table{
      option("board_power_w", &GpuPower::board_power_w, "power that the board is built for, drawn while kernels run",
             {0.001, 1e5}, "W"),
      option("idle_power_w", &GpuPower::idle_power_w, "power of the board while it waits", {0.001, 1e5}, "W"),
      option("communication_power_share", &GpuPower::communication_power_share,
             "power while compute waits for communication, as a share of the way from idle to board power", {0, 1},
             "share"),
  };
  return table;
}

double gpu_energy_j(const core::step::Breakdown& breakdown, const GpuPower& power) {
  if (!power.known()) return std::numeric_limits<double>::quiet_NaN();
  const auto& b = breakdown;
  const double kernels_s = b.forward_s + b.backward_s + b.recompute_s + b.optimizer_s + b.slowed_s;
  const double communication_s = b.exposed_tp_s + b.exposed_dp_s + b.exposed_pp_s + b.exposed_cp_s + b.exposed_ep_s;
  const double waiting_s = b.host_s + b.bubble_s + b.stall_s;
  const double communication_w =
      power.idle_power_w + power.communication_power_share * (power.board_power_w - power.idle_power_w);
  return kernels_s * power.board_power_w + communication_s * communication_w + waiting_s * power.idle_power_w;
}

}  // namespace manyworlds::experiments
