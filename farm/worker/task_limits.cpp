#include "farm/worker/task_limits.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <new>
#include <optional>

#include "core/base/error.hpp"
#include "farm/system/processors.hpp"
#include "farm/system/size_text.hpp"
#include "io/process/address_space.hpp"

namespace manyworlds::farm {

namespace {

/// Raising the score needs no privilege; a system without the file simply has no such killer.
void go_first_when_memory_is_short() {
  std::ofstream("/proc/self/oom_score_adj") << 900;
}

std::optional<std::uint64_t> bytes_in(const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoull(text);
}

}  // namespace

void limit_memory(std::uint64_t memory_bytes) {
  go_first_when_memory_is_short();
  // No unwinding: there is no memory for it, and half of a result is none.
  std::set_new_handler([] { ::_exit(kOutOfMemoryExit); });
  if (memory_bytes > 0) io::limit_address_space(memory_bytes);
}

void check_task_memory(std::uint64_t memory_bytes) {
  constexpr std::uint64_t kRoom = std::uint64_t{32} << 20;  // for the smallest of jobs
  const std::uint64_t least = io::address_space_bytes() + kRoom;
  if (memory_bytes == 0 || !io::address_space_can_be_limited() || memory_bytes >= least) return;
  throw core::InputError(fmt::format("--task-memory: {} is less than the {} that the smallest simulation takes",
                                     size_text(memory_bytes), size_text(least)));
}

std::uint64_t memory_share_bytes(int workers) {
  auto all =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const std::string& limit : cgroup_limits("memory.max"))
    if (const auto bytes = bytes_in(limit)) all = std::min(all, *bytes);
  return all / 10 * 9 / static_cast<std::uint64_t>(std::max(workers, 1));
}

}  // namespace manyworlds::farm
