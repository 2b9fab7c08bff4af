// Energy of a step: power times time of each part of the step.
#include "experiments/costs/power.hpp"
#include "core/workload/program/step_parts.hpp"

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
      option("kernel_power_share", &GpuPower::kernel_power_share, "the same while kernels of the model run", {0, 1},
             "share"),
      option("optimizer_power_share", &GpuPower::optimizer_power_share, "the same while the optimizer's kernels run",
             {0, 1}, "share"),
      option("waiting_power_share", &GpuPower::waiting_power_share,
             "the same while the GPU waits for its host, a pipeline neighbour or a straggler", {0, 1}, "share"),
  };
  return table;
}

const core::OptionTable<MachinePower>& machine_power_options() {
  static const core::OptionTable<MachinePower> table{
      option("host_power_w", &MachinePower::host_power_w,
             "power of one node without its GPUs: processors, memory, NICs, fans", {0.001, 1e7}, "W"),
      option("switch_port_power_w", &MachinePower::switch_port_power_w,
             "power of one port of a network switch, its share of the switch and its optics", {0.001, 1e5}, "W"),
      option("pue", &MachinePower::pue, "power usage effectiveness: power of the building over power of its machines",
             {1, 10}),
  };
  return table;
}

MachineParts machine_power_w(const MachinePower& power, std::int64_t nodes, std::int64_t switch_ports) {
  const auto total_w = [](std::int64_t count, double watts_each) {
    if (count == 0) return 0.0;
    return watts_each > 0 ? static_cast<double>(count) * watts_each : std::numeric_limits<double>::quiet_NaN();
  };
  return {0, total_w(nodes, power.host_power_w), total_w(switch_ports, power.switch_port_power_w)};
}

double gpu_energy_j(const core::step::Breakdown& breakdown, const GpuPower& power) {
  if (!power.known()) return std::numeric_limits<double>::quiet_NaN();
  using core::workload::Activity;
  const auto seconds = [&](Activity activity) {
    double sum = 0;
    for (const core::workload::StepPartInfo& part : core::workload::kStepParts)
      if (part.activity == activity) sum += breakdown[part.part];
    return sum;
  };
  const auto watts = [&](double share) {
    return power.idle_power_w + share * (power.board_power_w - power.idle_power_w);
  };
  return seconds(Activity::kernels) * watts(power.kernel_power_share) +
         seconds(Activity::optimizer) * watts(power.optimizer_power_share) +
         seconds(Activity::communication) * watts(power.communication_power_share) +
         seconds(Activity::waiting) * watts(power.waiting_power_share);
}

}  // namespace manyworlds::experiments
