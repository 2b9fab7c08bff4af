// The program of a transfer of weights: ranks that hold a model together gather it, one bucket of tensors after the
// other, and then the first of them broadcasts to those that need it. So do NeMo-RL ("policy parameter gather, weight
// broadcast", github.com/NVIDIA-NeMo/RL/discussions/3315) and slime (update_weight_from_distributed: "AllGather
// parameters to rank 0; broadcast parameters from rank 0 to all engines"); on shared GPUs gathering is all
// (nvidia-nemo.github.io/blog/2025/08/12/nemo-rl-refit-performance; verl's workers/sharding_manager: full_tensor()).
#pragma once

#include <cstdint>
#include <string>

#include "experiments/weight_transfers/weights_route.hpp"

namespace manyworlds::experiments::phases {

/// Returns the program file (docs/programs.md) of one bucket of `bytes`. The route must move something.
std::string weights_program(const WeightsRoute& route, std::int64_t bytes);

}  // namespace manyworlds::experiments::phases
