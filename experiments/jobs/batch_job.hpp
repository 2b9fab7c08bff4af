// What starts a program on all GPUs: torchrun, and Slurm if it starts the job of --like.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/jobs/job.hpp"

namespace manyworlds::experiments::jobs {

struct LaunchSize {
  std::int64_t nodes = 1, gpus_per_node = 1;
};

/// Whether Slurm starts the job of --like (null: there is none).
bool is_batch_job(const Job* like);

/// Returns the first lines of a script: the interpreter, and, if Slurm starts the job of --like (null: there is none),
/// #SBATCH lines with the nodes, one task on each, and its GPUs.
std::string script_head(const LaunchSize& size, const Job* like);

/// Returns the lines that start a program on all GPUs with torchrun, up to its name; with srun if Slurm starts the job
/// of --like.
std::string torchrun_lines(const LaunchSize& size, const Job* like);

/// Returns what a file that is no script has above it if Slurm starts the job of --like, as comments: the #SBATCH lines
/// of a batch script with `tasks_per_node` tasks, `command`, and what both assume. Empty if Slurm does not.
std::string batch_comment(const LaunchSize& size, std::int64_t tasks_per_node, const std::string& command,
                          const std::string& assumed, const Job* like);

}  // namespace manyworlds::experiments::jobs
