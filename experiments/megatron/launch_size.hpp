// How many nodes and GPUs a launcher starts: torchrun, srun, mpirun, deepspeed, and #SBATCH lines.
#pragma once

#include <string>
#include <vector>

#include "experiments/megatron/arguments.hpp"

namespace manyworlds::experiments::jobs {

/// Fills in nodes, gpus_per_node and gpus as far as `launcher`, the words before the program, and the #SBATCH lines of
/// `texts` tell.
void read_launch_size(const std::vector<Text>& launcher, const std::vector<std::string>& texts, JobArguments& to);

}  // namespace manyworlds::experiments::jobs
