// Sums over the kernels of operators.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/operators/operator.hpp"

namespace manyworlds::core::workload {

/// Returns the FLOPs of the forward or backward passes of operators.
inline std::int64_t flops_of(const std::vector<Operator>& operators, OpList Operator::*pass) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const WorkItem& work : each.*pass)
      if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.flops;
  return sum;
}

}  // namespace manyworlds::core::workload
