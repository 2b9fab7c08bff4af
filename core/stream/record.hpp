// The record of a rank: the spans of the operations on its streams, and the idle intervals of its compute stream with
// their reasons. Records are kept only for ranks that were requested.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::core::stream {

/// The reason why a compute stream waited. `slowed` is no wait: it is the extra time of kernels that ran concurrently
/// with collectives.
enum class Wait : std::uint8_t {
  exposed_tp,
  exposed_dp,
  exposed_pp,
  exposed_cp,
  exposed_ep,
  bubble,
  stall,
  slowed,
  exposed_offload
};
inline constexpr std::size_t kWaits = 9;
inline constexpr std::array<const char*, kWaits> kWaitNames{"exposed_tp", "exposed_dp", "exposed_pp",
                                                            "exposed_cp", "exposed_ep", "bubble",
                                                            "stall",      "slowed",     "exposed_offload"};

/// The interval of an operation, from its issue (a kernel starts, the rank enters a collective) until its stream can
/// run the next operation.
struct Span {
  std::uint32_t op = 0;
  Time begin = 0, end = 0;
  Time slowed = 0;  // the part counted as Wait::slowed; the rest of a kernel counts as its TimeCategory
  bool operator==(const Span&) const = default;
};

/// An interval of the step in which the compute stream had nothing to run.
struct Idle {
  Wait why = Wait::bubble;
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
