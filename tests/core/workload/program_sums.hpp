// Sums over the operations of a program.
#pragma once

#include <cstdint>
#include <map>

#include "core/workload/program/program.hpp"

namespace manyworlds::core::workload {

/// Returns the collective that the operation calls, if it is one of this role.
inline const CollectiveCall* call_of(const Op& op, Role role) {
  const CollectiveCall* call = op.collective();
  return call && call->role == role ? call : nullptr;
}

/// Whether the operation is a kernel that counts towards `category`.
inline bool is_kernel_of(const Op& op, StepPart category) {
  return op.kernel() && op.kernel()->category == category;
}

inline Time kernel_time(const Program& program, StepPart category) {
  Time sum = 0;
  for (const Op& op : program.ops)
    if (is_kernel_of(op, category)) sum += op.kernel()->duration_ps;
  return sum;
}

using BytesByKind = std::map<collective::Kind, std::int64_t>;

inline BytesByKind bytes_by_kind(const Program& program, Role role) {
  BytesByKind bytes;
  for (const Op& op : program.ops)
    if (const CollectiveCall* call = call_of(op, role)) bytes[call->kind] += call->bytes;
  return bytes;
}

}  // namespace manyworlds::core::workload
