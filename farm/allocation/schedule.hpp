// Jobs on the GPUs of one cluster from the first arrival to the last completion, divided anew by a policy whenever a
// job arrives or is done. Progress is exact; a completion is rounded up to a nanosecond.
#pragma once

#include <span>
#include <vector>

#include "farm/allocation/divide.hpp"

namespace manyworlds::farm::allocation {

struct Cluster {
  std::int64_t gpus = 0;
  Nanoseconds restart = 0;  // a job that ran before makes no progress for so long when its GPUs change
};

/// From then on the job has so many GPUs: 0 when it is done or has to wait.
struct Change {
  Nanoseconds at = 0;
  std::size_t job = 0;
  std::int64_t gpus = 0;
};

struct Schedule {
  std::vector<Nanoseconds> starts, ends;  // of each job
  std::vector<Change> changes;            // by time, then by job
  std::int64_t restarts = 0;              // of all jobs, their starts not counted
};

/// Returns an upper bound of the time from the last arrival to the last completion under any policy, in nanoseconds.
core::Int128 longest_time(std::span<const Job> jobs, const Cluster& cluster);

/// Simulates the jobs, at least one, each of which must be able to run, and to have what it requests, on the cluster.
/// Jobs that arrive together count in the order given. Throws core::InternalError if the last arrival and
/// longest_time() exceed 2^63 ns.
Schedule schedule_jobs(std::span<const Job> jobs, const Cluster& cluster, Policy policy);

/// Returns the mean time from arrival to completion of a job (JCT), in seconds.
double mean_completion_s(std::span<const Job> jobs, const Schedule& schedule);
/// Returns the time from the first arrival to the last completion, in seconds.
double makespan_s(std::span<const Job> jobs, const Schedule& schedule);
/// Returns the GPU-hours that the jobs hold, restarts included.
double gpu_hours(const Schedule& schedule, std::size_t jobs);

}  // namespace manyworlds::farm::allocation
