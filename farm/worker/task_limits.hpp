// What one task may take of its machine. For safety, not part of any answer: a task beyond is failed as `environment`.
#pragma once

#include <chrono>
#include <cstdint>

namespace manyworlds::farm {

struct TaskLimits {
  std::uint64_t memory_bytes = 0;     // of address space for the process that simulates; 0: no limit
  std::chrono::milliseconds time{0};  // on the clock; 0: no limit
};

/// The exit code of a simulating process that was refused memory.
inline constexpr int kOutOfMemoryExit = 71;

/// Holds this process to `memory_bytes` (0: no limit): an allocation beyond ends it with kOutOfMemoryExit. Where the
/// machine runs out first, this process is the one to go.
void limit_memory(std::uint64_t memory_bytes);

/// Throws InputError where a process of this program could not begin to simulate within `memory_bytes` (0: no limit).
void check_task_memory(std::uint64_t memory_bytes);

/// An even share of what this machine or cgroup has, nine tenths of it, for each of `workers`.
std::uint64_t memory_share_bytes(int workers);

}  // namespace manyworlds::farm
