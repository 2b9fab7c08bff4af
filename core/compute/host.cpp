#include "core/compute/host.hpp"

#include <cmath>

namespace manyworlds::core::compute {

Time host_wait(const HostWork& work, Time gpu_ps, const Gpu& gpu) {
  const double host = (gpu.host_kernel_us * static_cast<double>(work.kernels) +
                       gpu.host_collective_us * static_cast<double>(work.collectives)) *
                      static_cast<double>(kMicrosecond);
  if (host <= 0) return 0;
  const double busy = static_cast<double>(gpu_ps);
  const bool host_is_slower = host > busy;
  const double most = host_is_slower ? host : busy, ratio = host_is_slower ? busy / host : host / busy;
  const double square = ratio * ratio, fourth = square * square, eighth = fourth * fourth;
  const double paced = most * std::sqrt(std::sqrt(std::sqrt(1 + eighth)));
  return round_half_up(paced - busy);
}

}  // namespace manyworlds::core::compute
