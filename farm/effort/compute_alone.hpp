// A task of a sweep computed by itself, in a process that knows nothing yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "farm/plan/collective_result.hpp"
#include "farm/plan/sweep_job.hpp"
#include "farm/worker/zygote.hpp"

namespace manyworlds::farm {

struct ComputedAlone {
  enum class State : std::uint8_t { computed, too_long, impossible };
  static constexpr std::chrono::duration<double> kNoLimit{1e9};

  State state = State::impossible;
  std::vector<std::string> results;  // of the task's inputs, then its own
  bool ok() const { return state == State::computed; }
};

/// Computes a task and its inputs with nothing known before, for at most so long.
using ComputeAlone = std::function<ComputedAlone(std::uint32_t task, std::chrono::duration<double> at_most)>;
/// Each time in a new process of at most `memory_bytes` (0: no limit). The arguments must outlive the function.
ComputeAlone in_new_processes(const SweepJob& job, std::uint64_t memory_bytes, Zygote& zygote);

/// Returns what results took together, the last of which is that of a step.
Effort effort_of(const std::vector<std::string>& results);

}  // namespace manyworlds::farm
