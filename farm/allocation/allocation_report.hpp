// What `manyworlds allocate` prints: who gets how many GPUs when, and how long jobs take under each policy.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "farm/allocation/schedule.hpp"

namespace manyworlds::farm::allocation {

struct PolicyInfo {
  Policy policy;
  const char* name;  // in JSON
  const char* title;
};
inline constexpr std::array<PolicyInfo, 3> kPolicies{{{Policy::marginal_gain, "marginal_gain", "marginal gain"},
                                                      {Policy::fifo, "fifo", "FIFO"},
                                                      {Policy::drf, "drf", "DRF"}}};

/// The schedules of the same jobs under all policies.
struct AllocationReport {
  std::vector<Job> jobs;
  std::vector<std::string> sources;  // of each job's speeds: a results file, or "" if they were given
  Cluster cluster;
  std::array<Schedule, kPolicies.size()> schedules;  // in the order of kPolicies

  /// Tables, the divisions by marginal gain in the order of time, and what was assumed.
  std::string text() const;
  /// One object; times in seconds.
  std::string json() const;
};

/// Schedules the jobs under all policies.
AllocationReport allocate(std::vector<Job> jobs, std::vector<std::string> sources, const Cluster& cluster);

}  // namespace manyworlds::farm::allocation
