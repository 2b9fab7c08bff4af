#include "core/compute/host.hpp"

#include <cmath>

namespace manyworlds::core::compute {

Time host_wait(const HostWork& work, Time gpu_ps, const Gpu& gpu) {
  const double host_ps = (gpu.host_kernel_us * static_cast<double>(work.kernels) +
                          gpu.host_collective_us * static_cast<double>(work.collectives)) *
                         static_cast<double>(kMicrosecond);
  if (host_ps <= 0) return 0;
  const double busy_ps = static_cast<double>(gpu_ps);
  const bool host_is_slower = host_ps > busy_ps;
  const double slower_ps = host_is_slower ? host_ps : busy_ps,
               ratio = host_is_slower ? busy_ps / host_ps : host_ps / busy_ps;
  const double square = ratio * ratio, fourth = square * square, eighth = fourth * fourth;
  const double pass_ps = slower_ps * std::sqrt(std::sqrt(std::sqrt(1 + eighth)));
  return round_half_up(pass_ps - busy_ps);
}

}  // namespace manyworlds::core::compute
