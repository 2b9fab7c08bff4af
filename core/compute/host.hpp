// Time that a GPU waits for its host. The host launches kernels and collectives one after another while the GPU
// executes those launched before; the slower of the two determines the time of a layer. Which one is slower varies
// within a layer, so the time is a smooth maximum: (gpu^8 + host^8)^(1/8), which is 9 % above both where they are equal
// and 0.05 % above the larger where one is twice the other.
#pragma once

#include <cstdint>

#include "core/compute/gpu.hpp"

namespace manyworlds::core::compute {

/// The launches that a pass requires from the host.
struct HostWork {
  std::int64_t kernels = 0, collectives = 0;
};

/// Returns the time by which a pass whose kernels take `gpu_ps` is longer because of its host, in picoseconds, rounded
/// half up.
Time host_wait(const HostWork& work, Time gpu_ps, const Gpu& gpu);

}  // namespace manyworlds::core::compute
