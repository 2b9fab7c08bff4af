// What the streams of a rank did, operation by operation, and what its compute stream waited for. Kept only of ranks
// that somebody asks about.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::core::stream {

/// Why a compute stream waited; `slowed`: it did not, but its kernels took so much longer beside collectives.
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

/// An operation from when it was issued (a kernel starts, the rank enters a collective) to when its stream went on.
struct Span {
  std::uint32_t op = 0;
  Time begin = 0, end = 0;
  Time slowed = 0;  // what of it is Wait::slowed; the rest of a kernel is its booking's
  bool operator==(const Span&) const = default;
};

/// A part of the step in which the compute stream had nothing to run.
struct Idle {
  Wait why = Wait::bubble;
  Time begin = 0, end = 0;
  bool operator==(const Idle&) const = default;
};

/// Kernels of the compute stream and the idle parts between them fill the step from 0 to its end without overlap.
struct Record {
  std::vector<Span> spans;  // in the order in which they ended; of a stream, in its order
  std::vector<Idle> idle;   // in order of time; two that touch have different reasons
  bool operator==(const Record&) const = default;
};

}  // namespace manyworlds::core::stream
