#include "farm/worker/task_limits.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <new>
#include <optional>

#include "core/base/error.hpp"
#include "farm/system/host_resources.hpp"
#include "farm/system/size_text.hpp"
#include "io/process/address_space.hpp"

namespace manyworlds::farm {

namespace {

/// Raises the OOM score, which needs no privilege. A system without the file has no OOM killer.
void prefer_as_oom_victim() {
  std::ofstream("/proc/self/oom_score_adj") << 900;
}

std::optional<std::uint64_t> parse_bytes(const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoull(text);
}

}  // namespace

std::uint64_t address_space_of(const TaskLimits& limits) {
  // A stack, at the usual `ulimit -s`, and a heap of glibc's (HEAP_MAX_SIZE of malloc/arena.c on 64 bits).
  constexpr std::uint64_t kReservedPerThread = (std::uint64_t{8} << 20) + (std::uint64_t{64} << 20);
  return limits.memory_bytes == 0 ? 0 : limits.memory_bytes + (limits.threads - 1) * kReservedPerThread;
}

void limit_memory(std::uint64_t memory_bytes) {
  prefer_as_oom_victim();
  // There is no memory for unwinding, and a partial result is useless.
  std::set_new_handler([] { ::_exit(kOutOfMemoryExit); });
  if (memory_bytes > 0) io::limit_address_space(memory_bytes);
}

void check_task_memory(std::uint64_t memory_bytes) {
  constexpr std::uint64_t kMinHeadroom = std::uint64_t{32} << 20;  // for the smallest of jobs
  const std::uint64_t min_bytes = io::address_space_bytes() + kMinHeadroom;
  if (memory_bytes == 0 || !io::can_limit_address_space() || memory_bytes >= min_bytes) return;
  throw core::InputError(fmt::format("--task-memory: {} is less than the {} that the smallest simulation takes",
                                     size_text(memory_bytes), size_text(min_bytes)));
}

std::uint64_t memory_share_bytes(int workers) {
  auto total_bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const std::string& limit : cgroup_limits("memory.max"))
    if (const auto bytes = parse_bytes(limit)) total_bytes = std::min(total_bytes, *bytes);
  return total_bytes / 10 * 9 / static_cast<std::uint64_t>(std::max(workers, 1));
}

}  // namespace manyworlds::farm
