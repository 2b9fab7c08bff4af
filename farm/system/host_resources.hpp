// How many ranks this machine or this allocation can run, and whether this process is one of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace manyworlds::farm {

struct RankCount {
  int ranks = 1;
  std::string why;  // where the number comes from: "2 CPUs", "128 tasks of Slurm job 17"
};

/// Returns the number of ranks to start: `requested` if the user gave one, else the task count of the Slurm allocation,
/// else what the affinity mask and the cgroup's CPU quota allow. Throws core::InputError if `requested` is not within
/// 1..100000 or, outside batch jobs, is far more than the number of CPUs.
RankCount rank_count(std::optional<int> requested);

/// Returns the number of CPUs that the affinity mask and the cgroup's CPU quota leave to this process; at least 1.
int available_cpus();

/// Returns with how many threads a rank simulates unless told: the CPUs that Slurm gives a task, as far as this process
/// may use them, else 1, as there is a rank for each CPU.
int threads_per_rank();

/// Returns how many of the `ranks` run on this machine, as far as the launcher's environment shows; otherwise `ranks`.
int local_rank_count(int ranks);

/// Returns this process's rank if mpirun or srun started it as one.
std::optional<int> launched_rank();

/// Returns the path of `program` in PATH, or nullopt.
std::optional<std::string> find_program(const std::string& program);

/// Returns the batch system's id of this job; "" outside a batch job.
std::string batch_job_id();

/// Returns the first line of `file` for this process's cgroup and each of its ancestors (v2); "" where the file is
/// missing.
std::vector<std::string> cgroup_limits(const std::string& file);

/// Returns the CPUs that a cgroup v2 `cpu.max` text allows ("150000 100000"), rounded up; nullopt if unlimited ("max
/// 100000").
std::optional<int> cpus_of_quota(const std::string& cpu_max);

/// Returns freed memory to the operating system, which the allocator would otherwise keep.
void return_freed_memory();

}  // namespace manyworlds::farm
