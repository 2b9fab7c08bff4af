#include "experiments/jobs/batch_job.hpp"

#include <fmt/format.h>

namespace manyworlds::experiments::jobs {
namespace {

/// Returns the #SBATCH lines, each behind `margin`.
std::string batch_lines(const LaunchSize& size, std::int64_t tasks_per_node, const std::string& margin) {
  return fmt::format("{0}#SBATCH --nodes={1}\n{0}#SBATCH --ntasks-per-node={2}\n{0}#SBATCH --gpus-per-node={3}\n",
                     margin, size.nodes, tasks_per_node, size.gpus_per_node);
}

}  // namespace

bool is_batch_job(const Job* like) {
  return like != nullptr && like->is_batch_job;
}

std::string script_head(const LaunchSize& size, const Job* like) {
  return "#!/bin/bash\n" + (is_batch_job(like) ? batch_lines(size, 1, "") : "");
}

std::string torchrun_lines(const LaunchSize& size, const Job* like) {
  const std::string torchrun = fmt::format("torchrun --nproc_per_node {} --nnodes {}", size.gpus_per_node, size.nodes);
  if (!is_batch_job(like))
    return torchrun +
           " --node_rank \"${NODE_RANK:-0}\" \\\n"
           "  --master_addr \"${MASTER_ADDR:-localhost}\" --master_port \"${MASTER_PORT:-6000}\" \\\n  ";
  return "srun --ntasks-per-node 1 " + torchrun +
         " --rdzv_id \"$SLURM_JOB_ID\" --rdzv_backend c10d \\\n"
         "  --rdzv_endpoint \"$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1):${MASTER_PORT:-6000}\" "
         "\\\n  ";
}

std::string batch_comment(const LaunchSize& size, std::int64_t tasks_per_node, const std::string& command,
                          const std::string& assumed, const Job* like) {
  if (!is_batch_job(like)) return "";
  const std::string margin = "#   ";
  std::string lines = margin;
  for (const char c : command) lines += c == '\n' ? "\n" + margin : std::string(1, c);
  return fmt::format("# Slurm starts it by a batch script of these lines; assumed: {}.\n{}{}\n", assumed,
                     batch_lines(size, tasks_per_node, margin), lines);
}

}  // namespace manyworlds::experiments::jobs
