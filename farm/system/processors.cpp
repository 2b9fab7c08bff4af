#include "farm/system/processors.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/base/error.hpp"
#include "farm/system/launcher.hpp"

namespace manyworlds::farm {

namespace {

constexpr int kMostRanksOfACpu = 16;  // outside of batch jobs, whose ranks are on other machines too

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::optional<int> number_in(const char* name) {
  const std::string text = environment(name);
  if (text.empty() || text.size() > 8 || text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return std::stoi(text);
}

int affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));  // more CPUs than a cpu_set_t holds
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The tightest quota of this process's cgroup and those above it (v2), or of the v1 controller.
std::optional<int> quota() {
  std::optional<int> tightest;
  const auto consider = [&tightest](std::optional<int> cpus) {
    if (cpus) tightest = std::min(tightest.value_or(*cpus), *cpus);
  };
  for (const std::string& limit : cgroup_limits("cpu.max")) consider(cpus_of_quota(limit));
  const std::string v1 = "/sys/fs/cgroup/cpu/cpu.cfs_";
  consider(cpus_of_quota(first_line(v1 + "quota_us") + " " + first_line(v1 + "period_us")));
  return tightest;
}

}  // namespace

std::vector<std::string> cgroup_limits(const std::string& file) {
  std::vector<std::string> limits;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    std::string path = line.substr(3);
    for (;;) {
      limits.push_back(first_line("/sys/fs/cgroup" + path + "/" + file));
      if (path.empty() || path == "/") break;
      path.erase(path.rfind('/'));
    }
  }
  return limits;
}

std::optional<int> cpus_of_quota(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  std::int64_t quota_us = 0, period_us = 0;
  if (!(words >> quota_us >> period_us) || quota_us <= 0 || period_us <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<std::int64_t>((quota_us + period_us - 1) / period_us, 1, 1 << 20));
}

RankCount rank_count(std::optional<int> asked) {
  if (asked) {
    if (*asked < 1 || *asked > 100'000)
      throw core::InputError(fmt::format("-j {}: the number of ranks is from 1 to 100000", *asked));
    if (const int cpus = cpus_at_hand(); batch_job().empty() && *asked > kMostRanksOfACpu * cpus)
      throw core::InputError(fmt::format(
          "-j {}: ranks are processes that compute, and {} {} at hand; without -j there is one for each, and "
          "more than {} only keep each other waiting",
          *asked, cpus, cpus == 1 ? "CPU is" : "CPUs are", kMostRanksOfACpu * cpus));
    return {*asked, fmt::format("-j {}", *asked)};
  }
  if (!environment("SLURM_JOB_ID").empty())
    if (const auto tasks = number_in("SLURM_NTASKS"); tasks && *tasks > 0)
      return {*tasks, fmt::format("{} tasks of Slurm job {}", *tasks, environment("SLURM_JOB_ID"))};
  const int cpus = affinity();
  if (const auto limit = quota(); limit && *limit < cpus) return {*limit, fmt::format("a CPU quota of {}", *limit)};
  return {cpus, fmt::format("{} CPUs", cpus)};
}

int cpus_at_hand() {
  const int cpus = affinity();
  return std::max(1, std::min(cpus, quota().value_or(cpus)));
}

int ranks_on_this_machine(int ranks) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"})
    if (const auto local = number_in(name); local && *local > 0) return *local;
  return ranks;
}

std::optional<int> launched_rank() {
  for (const std::string& name : rank_variables())
    if (const auto rank = number_in(name.c_str())) return rank;
  return std::nullopt;
}

std::optional<std::string> find_program(const std::string& program) {
  std::istringstream folders(environment("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && ::access((folder + "/" + program).c_str(), X_OK) == 0) return folder + "/" + program;
  return std::nullopt;
}

std::string batch_job() {
  return environment("SLURM_JOB_ID");
}

void return_freed_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace manyworlds::farm
