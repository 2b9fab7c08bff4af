// Algorithm and bus bandwidth of a collective, as NCCL's tests define them (nccl-tests, doc/PERFORMANCE.md).
#pragma once

#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

/// What bus bandwidth is to algorithm bandwidth: 2 (n - 1) / n of an all-reduce, (n - 1) / n of an all-gather, a
/// reduce-scatter and an all-to-all, 1 of a broadcast, a send and a reduce.
constexpr double bus_factor(Kind kind, std::uint32_t members) {
  if (kind == Kind::broadcast || kind == Kind::send || kind == Kind::reduce) return 1;
  const double n = members;
  return (kind == Kind::all_reduce ? 2 : 1) * (n - 1) / n;
}

/// Its bytes (see Kind) over `elapsed` > 0, in GB/s.
constexpr double algorithm_gb_per_s(const Shape& shape, Time elapsed) {
  return static_cast<double>(shape.bytes) / seconds(elapsed) * 1e-9;
}

/// Bytes that leave each member over `elapsed` > 0, in GB/s: comparable with the rate of a link, whatever the kind.
constexpr double bus_gb_per_s(const Shape& shape, Time elapsed) {
  return bus_factor(shape.kind, shape.members) * static_cast<double>(shape.bytes) / seconds(elapsed) * 1e-9;
}

}  // namespace manyworlds::core::collective
