// Limits on the resources of one task. They protect the machine and are not part of any result: a task that exceeds one
// of memory or time fails as `environment`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace manyworlds::farm {

struct TaskLimits {
  std::uint64_t memory_bytes = 0;     // memory of the simulating process; 0: no limit
  std::chrono::milliseconds time{0};  // wall-clock time; 0: no limit
  std::size_t threads = 1;            // threads of the simulating process
};

/// The exit code of a simulating process whose allocation was refused.
inline constexpr int kOutOfMemoryExit = 71;

/// Returns the limit on the address space of a simulating process (0: none): that of its memory, and what the C library
/// reserves for every further thread and hardly touches.
std::uint64_t address_space_of(const TaskLimits& limits);

/// Limits this process to `memory_bytes` (0: no limit): an allocation beyond that ends it with kOutOfMemoryExit. Also
/// makes this process the preferred victim when the machine runs out of memory.
void limit_memory(std::uint64_t memory_bytes);

/// Throws core::InputError if a simulating process could not start within `memory_bytes` (0: no limit).
void check_task_memory(std::uint64_t memory_bytes);

/// Returns an even share for each of `workers` of nine tenths of the memory of this machine or cgroup.
std::uint64_t memory_share_bytes(int workers);

}  // namespace manyworlds::farm
