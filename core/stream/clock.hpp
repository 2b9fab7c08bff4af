// The clock of the streams. What GPUs do begins and ends on its ticks, whatever the network's picoseconds are, so that
// equal traffic in two places of a step has equal offsets (docs/model.md, "A clock that ticks").
#pragma once

#include "core/base/error.hpp"
#include "core/base/units.hpp"

namespace manyworlds::core::stream {

class Clock {
 public:
  explicit Clock(Time tick_ps) : tick_ps_(tick_ps) {
    MANYWORLDS_CHECK(tick_ps >= 1, "a clock that ticks every {} ps", tick_ps);
  }

  /// The tick nearest to `at`, half up: the rounding of kernels.
  Time nearest(Time at) const { return (at + tick_ps_ / 2) / tick_ps_ * tick_ps_; }
  /// The first tick not before `at`: what the network does is noticed no earlier than it is done.
  Time not_before(Time at) const { return (at + tick_ps_ - 1) / tick_ps_ * tick_ps_; }
  bool ticks_at(Time at) const { return at % tick_ps_ == 0; }

 private:
  Time tick_ps_;
};

}  // namespace manyworlds::core::stream
