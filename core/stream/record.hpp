// The record of a rank: the spans of the operations on its streams, and the idle intervals of its compute stream with
// their reasons. Records are kept only for ranks that were requested.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "core/workload/program/step_parts.hpp"

namespace manyworlds::core::stream {

using workload::StepPart;

/// The interval of an operation, from its issue (a kernel starts, the rank enters a collective) until its stream can
/// run the next operation.
struct Span {
  std::uint32_t op = 0;
  Time begin = 0, end = 0;
  Time slowed = 0;  // the part counted as StepPart::slowed; the rest of a kernel counts as its own part
  bool operator==(const Span&) const = default;
};

/// An interval of the step in which the compute stream had nothing to run.
struct Idle {
  StepPart why = StepPart::bubble;
  Time begin = 0, end = 0;
  bool operator==(const Idle&) const = default;
};

/// Kernels of the compute stream and the idle intervals between them fill the step from 0 to its end without overlap.
struct Record {
  std::vector<Span> spans;  // by end time; those of one stream are in stream order
  std::vector<Idle> idle;   // by time; adjacent intervals have different reasons
  bool operator==(const Record&) const = default;
};

}  // namespace manyworlds::core::stream
