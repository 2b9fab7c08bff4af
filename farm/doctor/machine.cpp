// Processors, memory, limits of processes and shared memory, as this process may use them.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/plural.hpp"
#include "farm/doctor/finding.hpp"
#include "farm/system/host_resources.hpp"
#include "farm/system/size_text.hpp"
#include "farm/worker/task_limits.hpp"

namespace manyworlds::farm::doctor {

namespace {

using State = Finding::State;

constexpr std::uint64_t kMinFileBytes = std::uint64_t{1} << 30;  // a journal's or a results file's
constexpr std::uint64_t kMinFiles = 256;                         // connections of a rank, files of a store
constexpr std::uint64_t kMinProcessesPerRank = 8;                // a rank, its simulator, threads of MPI
constexpr std::uint64_t kSharedBytesPerRank = 8 << 20;           // Open MPI's segment, generously

/// Returns a line of /proc/meminfo in bytes; nothing if there is no such line.
std::optional<std::uint64_t> memory_info(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  for (std::uint64_t kib = 0; file >> word >> kib; file.ignore(64, '\n'))
    if (word == name + ":") return kib << 10;
  return std::nullopt;
}

Finding examine_memory(int ranks) {
  const std::uint64_t share = memory_share_bytes(ranks);
  Finding finding{State::ok, "memory",
                  fmt::format("{} for the simulations of {} {}", size_text(share * static_cast<std::uint64_t>(ranks)),
                              ranks, core::plural(static_cast<std::uint64_t>(ranks), "rank"))};
  if (const auto free = memory_info("MemAvailable")) finding.found += fmt::format("; {} is free", size_text(*free));
  try {
    check_task_memory(share);
  } catch (const core::InputError& error) {
    finding.state = State::broken;
    finding.found += fmt::format(": {}", error.what());
    finding.advice = "raise the memory limit of this job or container, or start fewer ranks (-j)";
  }
  return finding;
}

struct Limit {
  const char* name;
  __rlimit_resource resource;
  std::uint64_t minimum;
  bool bytes;
  const char* command;  // of a shell
};

Finding examine_limits(int ranks) {
  const Limit limits[] = {
      {"open files", RLIMIT_NOFILE, kMinFiles, false, "ulimit -n"},
      {"processes", RLIMIT_NPROC, kMinProcessesPerRank * static_cast<std::uint64_t>(ranks), false, "ulimit -u"},
      {"address space", RLIMIT_AS, kMinFileBytes, true, "ulimit -v"},
      {"size of a file", RLIMIT_FSIZE, kMinFileBytes, true, "ulimit -f"}};
  Finding finding{State::ok, "limits", ""};
  for (const Limit& limit : limits) {
    rlimit now{};
    if (::getrlimit(limit.resource, &now) != 0 || now.rlim_cur == RLIM_INFINITY) continue;
    const auto text = [&](std::uint64_t value) { return limit.bytes ? size_text(value) : std::to_string(value); };
    finding.found += fmt::format("{}{} {}", finding.found.empty() ? "" : ", ", limit.name, text(now.rlim_cur));
    if (now.rlim_cur >= limit.minimum) continue;
    finding.state = State::broken;
    finding.advice += fmt::format("{}raise {} to {} at least ({})", finding.advice.empty() ? "" : "; ", limit.name,
                                  text(limit.minimum), limit.command);
  }
  if (finding.found.empty()) finding.found = "none";
  return finding;
}

/// What the ranks of one machine exchange messages through. Without it MPI takes a slower way.
Finding examine_shared_memory(int ranks) {
  const std::filesystem::path folder = "/dev/shm";
  const std::uint64_t wanted = kSharedBytesPerRank * static_cast<std::uint64_t>(ranks);
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error || ::access(folder.c_str(), W_OK | X_OK) != 0)
    return {error ? State::missing : State::broken, "shared memory",
            error ? "there is no /dev/shm" : "/dev/shm cannot be written", "mount a tmpfs at /dev/shm (mode 1777)",
            false};
  Finding finding{State::ok, "shared memory", fmt::format("{} of /dev/shm are free", size_text(space.available))};
  finding.needed = false;
  if (space.available < wanted) {
    finding.state = State::broken;
    finding.advice = fmt::format(
        "{} ranks may need {}: remove what is left there, or start the container with "
        "--shm-size=1g",
        ranks, size_text(wanted));
  }
  return finding;
}

}  // namespace

std::vector<Finding> examine_machine() {
  const RankCount count = rank_count(std::nullopt);
  return {{State::ok, "processors",
           fmt::format("{} {} by default ({})", count.ranks,
                       core::plural(static_cast<std::uint64_t>(count.ranks), "rank"), count.why)},
          examine_memory(count.ranks),
          examine_limits(count.ranks),
          examine_shared_memory(count.ranks)};
}

}  // namespace manyworlds::farm::doctor
