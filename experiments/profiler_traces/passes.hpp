// The pass that a kernel is of, as far as the framework's own annotations tell.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/program/step_parts.hpp"
#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::profiler {

/// Kernels launched inside an operator of autograd's engine are of the backward pass, inside `Optimizer.step` of the
/// optimizer, and before the next backward pass of the same step of the forward pass. All others are of no known pass.
class Passes {
 public:
  explicit Passes(const RankTrace& trace);

  core::workload::StepPart part_of(std::uint32_t thread, std::int64_t launched) const;

 private:
  struct Interval {
    std::int64_t start = 0, end = 0;
  };
  using Intervals = std::vector<Interval>;  // ascending, apart from each other

  static void add(Intervals& to, const Span& span);
  static bool has(const Intervals& all, std::int64_t time);
  static std::int64_t next_start(const Intervals& all, std::int64_t time);

  std::vector<Intervals> backward_, optimizer_;  // by thread
  Intervals backwards_, optimizers_, steps_;     // of all threads
};

}  // namespace manyworlds::experiments::profiler
