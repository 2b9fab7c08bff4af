// How many ranks this machine, or this allocation, is good for; and whether this process is one of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace manyworlds::farm {

struct RankCount {
  int ranks = 1;
  std::string why;  // "2 of the affinity mask", "128 tasks of Slurm job 17"
};

/// `asked` is what the user wants (0: nothing). Inside a Slurm allocation its task count, else what the affinity mask
/// and the cgroup's CPU quota allow. Throws core::InputError for less than 1, and outside of batch jobs for far more
/// than there are CPUs.
RankCount rank_count(std::optional<int> asked);

/// What the affinity mask and the cgroup's CPU quota leave to this process; 1 or more.
int cpus_at_hand();

/// Of `ranks`, those on this machine, as far as who started them says; else all.
int ranks_on_this_machine(int ranks);

/// This process's rank, when mpirun or srun started it as one.
std::optional<int> launched_rank();

/// The path of `program` in PATH, or nothing.
std::optional<std::string> find_program(const std::string& program);

/// The batch system's id of this job, "" outside of one.
std::string batch_job();

/// The first lines of `file` in this process's cgroup and all above it (v2); "" where there is none.
std::vector<std::string> cgroup_limits(const std::string& file);

/// CPUs a cgroup v2 `cpu.max` text allows ("max 100000", "150000 100000"), rounded up; nothing when unlimited.
std::optional<int> cpus_of_quota(const std::string& cpu_max);

/// Gives memory that this process has freed back to the machine, where its allocator would keep it.
void return_freed_memory();

}  // namespace manyworlds::farm
