// Time that a GPU waits for its host. The host launches kernels and collectives one after another while the GPU works
// through those launched before; whichever is slower sets the pace of a layer. Both alternate within it, so the pace
// is a smooth maximum: (gpu^8 + host^8)^(1/8), which is 9 % above both where they are equal and 0.05 % where one is
// twice the other.
#pragma once

#include <cstdint>

#include "core/compute/gpu.hpp"

namespace manyworlds::core::compute {

/// What a pass needs of the host.
struct HostWork {
  std::int64_t kernels = 0, collectives = 0;
};

/// What a pass whose kernels take `gpu_ps` is longer because of its host, rounded half up to a picosecond.
Time host_wait(const HostWork& work, Time gpu_ps, const Gpu& gpu);

}  // namespace manyworlds::core::compute
