// The host, which launches kernels and collectives one after another while the GPU runs those launched before.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"

namespace manyworlds::core::compute {

/// Launches that software requires from the host.
struct HostWork {
  std::int64_t kernels = 0, collectives = 0;
};

/// Host time of one launch, with everything that the software does for it, in microseconds.
struct LaunchTimes {
  double kernel_us = 0, collective_us = 0;

  bool any() const { return kernel_us > 0 || collective_us > 0; }
  /// Returns the host's time for this work, in picoseconds, rounded half up.
  Time of(const HostWork& work) const {
    return round_half_up(
        (kernel_us * static_cast<double>(work.kernels) + collective_us * static_cast<double>(work.collectives)) *
        static_cast<double>(kMicrosecond));
  }
};

}  // namespace manyworlds::core::compute
