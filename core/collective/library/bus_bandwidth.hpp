// Algorithm and bus bandwidth of a collective, as NCCL's tests define them (nccl-tests, doc/PERFORMANCE.md).
#pragma once

#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

/// Returns the ratio of bus bandwidth to algorithm bandwidth: 2 (n - 1) / n for all_reduce; (n - 1) / n for all_gather,
/// reduce_scatter and all_to_all; 1 for broadcast, send and reduce.
constexpr double bus_factor(Kind kind, std::uint32_t members) {
  if (kind == Kind::broadcast || kind == Kind::send || kind == Kind::reduce) return 1;
  const double n = members;
  return (kind == Kind::all_reduce ? 2 : 1) * (n - 1) / n;
}

/// Returns the operation's bytes (see Kind) over `elapsed` > 0, in GB/s.
constexpr double algorithm_gb_per_s(const Shape& shape, Time elapsed) {
  return static_cast<double>(shape.bytes) / seconds(elapsed) * 1e-9;
}

/// Returns the bus bandwidth for `elapsed` > 0, in GB/s: for every kind it is comparable to the rate of a link.
constexpr double bus_gb_per_s(const Shape& shape, Time elapsed) {
  return bus_factor(shape.kind, shape.members) * static_cast<double>(shape.bytes) / seconds(elapsed) * 1e-9;
}

}  // namespace manyworlds::core::collective
