#include "farm/system/host_resources.hpp"

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

constexpr int kMaxRanksPerCpu = 16;  // limit outside batch jobs; in a batch job, ranks also run on other machines

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::optional<int> environment_number(const char* name) {
  const std::string text = environment(name);
  if (text.empty() || text.size() > 8 || text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return std::stoi(text);
}

int affinity_cpus() {
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

/// Returns the tightest CPU quota of this process's cgroup and its ancestors (v2), or of the v1 controller.
std::optional<int> cpu_quota() {
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
  std::istringstream fields(cpu_max);
  std::int64_t quota_us = 0, period_us = 0;
  if (!(fields >> quota_us >> period_us) || quota_us <= 0 || period_us <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<std::int64_t>((quota_us + period_us - 1) / period_us, 1, 1 << 20));
}

RankCount rank_count(std::optional<int> requested) {
  if (requested) {
    if (*requested < 1 || *requested > 100'000)
      throw core::InputError(fmt::format("-j {}: the number of ranks is from 1 to 100000", *requested));
    if (const int cpus = available_cpus(); batch_job_id().empty() && *requested > kMaxRanksPerCpu * cpus)
      throw core::InputError(fmt::format(
          "-j {}: ranks are processes that compute, and {} {} at hand; without -j there is one for each, and "
          "more than {} only keep each other waiting",
          *requested, cpus, cpus == 1 ? "CPU is" : "CPUs are", kMaxRanksPerCpu * cpus));
    return {*requested, fmt::format("-j {}", *requested)};
  }
  if (!environment("SLURM_JOB_ID").empty())
    if (const auto tasks = environment_number("SLURM_NTASKS"); tasks && *tasks > 0)
      return {*tasks, fmt::format("{} tasks of Slurm job {}", *tasks, environment("SLURM_JOB_ID"))};
  const int cpus = affinity_cpus();
  if (const auto limit = cpu_quota(); limit && *limit < cpus) return {*limit, fmt::format("a CPU quota of {}", *limit)};
  return {cpus, fmt::format("{} CPUs", cpus)};
}

int available_cpus() {
  const int cpus = affinity_cpus();
  return std::max(1, std::min(cpus, cpu_quota().value_or(cpus)));
}

int threads_per_rank() {
  const int cpus = environment("SLURM_JOB_ID").empty() ? 1 : environment_number("SLURM_CPUS_PER_TASK").value_or(1);
  return std::clamp(cpus, 1, available_cpus());
}

int local_rank_count(int ranks) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"})
    if (const auto local = environment_number(name); local && *local > 0) return *local;
  return ranks;
}

std::optional<int> launched_rank() {
  for (const std::string& name : rank_variables())
    if (const auto rank = environment_number(name.c_str())) return rank;
  return std::nullopt;
}

std::optional<std::string> find_program(const std::string& program) {
  std::istringstream folders(environment("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && ::access((folder + "/" + program).c_str(), X_OK) == 0) return folder + "/" + program;
  return std::nullopt;
}

std::string batch_job_id() {
  return environment("SLURM_JOB_ID");
}

void return_freed_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace manyworlds::farm
