// What collectives take from kernels that run at the same time.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"
#include "core/collective/dag/dag.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::stream {

/// The slowdown of kernels as a fraction: their duration over the duration without collectives.
struct Pace {
  std::int64_t numerator = 1, denominator = 1;
  bool operator==(const Pace&) const = default;
};

/// The resources that collectives take from kernels: a fixed share, or compute units.
struct Interference {
  // NOLINTNEXTLINE(google-explicit-constructor): most callers need only the fixed share
  Interference(std::int64_t ppm = 0) : slowdown_ppm(ppm) {}

  std::int64_t slowdown_ppm = 0;  // extra duration of kernels during any collective, in millionths
  std::int64_t units = 0;         // if above 0, replaces the share: compute units of the GPU
  std::int64_t units_to_move = 0,
               units_to_reduce = 0;  // units taken by one collective that only moves data, that reduces

  /// Returns the compute units that a collective takes, or 1 under a fixed share. In compute units, a context-ring
  /// exchange is counted once, by its send.
  std::int64_t load_of(workload::Role role, collective::Kind kind) const;
  /// Returns the pace of kernels beside collectives with this load together.
  Pace pace_beside(std::int64_t load) const;
  /// Returns the work, in the time that it takes alone, that kernels do less while they run beside such a collective
  /// for `beside` picoseconds, rounded down.
  Time lost_beside(workload::Role role, collective::Kind kind, Time beside) const;
};

}  // namespace manyworlds::core::stream
