// How many nodes and GPUs a launcher starts: torchrun, srun, mpirun, deepspeed, and #SBATCH lines.
#pragma once

#include <string>
#include <vector>

#include "experiments/megatron/arguments.hpp"

namespace manyworlds::experiments::jobs {

/// Fills in nodes, gpus_per_node and gpus as far as `launcher`, the words before the program, and the #SBATCH lines of
/// `texts` tell.
void read_launch_size(const std::vector<Text>& launcher, const std::vector<std::string>& texts, JobArguments& to);

/// Returns the variables that Slurm sets where a script runs, as far as its #SBATCH lines say: SLURM_NNODES of
/// --nodes, SLURM_NTASKS, SLURM_GPUS_ON_NODE and their kind.
std::map<std::string, std::string> batch_variables(const std::string& text);

}  // namespace manyworlds::experiments::jobs
